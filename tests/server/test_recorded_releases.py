"""ApiVersions as brokers of every release line answered it (`fixtures/golden/releases`) against kproto."""

import pytest

from kproto.messages.k18_api_versions import ApiVersionsResponse
from kproto.registry import codec
from kproto_server.releases.features import features_of
from kproto_server.releases.kafka_version import KafkaVersion
from tests.fixture_files import GoldenPair, api_versions, golden_releases

API_VERSIONS = 18
NO_FEATURE_VERSION = 4
"""The first version in which features may have level 0."""


def answers(note: str) -> list[tuple[str, int, ApiVersionsResponse]]:
    """Release, version and answer of each broker that was asked."""
    found = []
    for pair in golden_releases("ApiVersions"):
        if pair.note == note:
            found += [(broker, pair.api_version, decoded(pair)) for broker in pair.brokers]
    return found


def decoded(pair: GoldenPair) -> ApiVersionsResponse:
    assert pair.response is not None
    # The response header is the correlation id alone, whatever the version (BA-5).
    answer, end = codec(API_VERSIONS, pair.api_version).decode_response(pair.response, 4)
    assert end == len(pair.response)
    assert isinstance(answer, ApiVersionsResponse)
    return answer


def test_a_broker_of_every_line_that_has_api_versions_was_asked() -> None:
    surfaces = {(surface.line, surface.mode) for surface in api_versions().surfaces if surface.has_api_versions}
    asked = {KafkaVersion.named(broker) for broker, _, _ in answers("ask")}
    assert {(KafkaVersion.named(f"{line}-{mode}")) for line, mode in surfaces} == asked


@pytest.mark.parametrize(("broker", "version", "answer"), answers("ask"))
def test_the_apis_are_those_of_the_kafka_version_in_their_order(
    broker: str, version: int, answer: ApiVersionsResponse
) -> None:
    listed = [(api.api_key, (api.min_version, api.max_version)) for api in answer.api_keys]
    assert listed == list(KafkaVersion.named(broker).api_versions.items())


@pytest.mark.parametrize(
    ("broker", "version", "answer"), [asked for asked in answers("ask") if asked[1] >= NO_FEATURE_VERSION - 1]
)
def test_the_features_are_those_of_the_kafka_version(broker: str, version: int, answer: ApiVersionsResponse) -> None:
    features = features_of(KafkaVersion.named(broker))
    least = 0 if version >= NO_FEATURE_VERSION else 1
    assert {(f.name, f.min_version, f.max_version) for f in answer.supported_features} == {
        feature for feature in features.supported if feature[1] >= least
    }
    assert {(f.name, f.max_version_level) for f in answer.finalized_features} == set(features.finalized)
    assert all(f.min_version_level == f.max_version_level for f in answer.finalized_features)
    assert (answer.finalized_features_epoch == -1) == (features.epoch == -1)
    assert not answer.zk_migration_ready


@pytest.mark.parametrize(("broker", "version", "answer"), answers("bad software name") + answers("empty software name"))
def test_ba_22_a_software_name_that_cannot_be_is_refused(
    broker: str, version: int, answer: ApiVersionsResponse
) -> None:
    assert (answer.error_code, answer.api_keys) == (42, ())
