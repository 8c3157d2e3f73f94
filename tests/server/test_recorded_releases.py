"""kproto has the APIs and features of recorded brokers of every release line (`fixtures/golden/releases`)."""

import pytest

from kproto.messages.k18_api_versions import ApiVersionsResponse
from kproto.registry import codec
from kproto_server.releases.features import features_of
from kproto_server.releases.kafka_version import KafkaVersion
from tests.fixture_files import GoldenPair, api_versions, golden_releases

API_VERSIONS = 18
NO_FEATURE_VERSION = 4
"""The first version in which features may have level 0."""


def responses(note: str) -> list[tuple[str, int, ApiVersionsResponse]]:
    """Return release, version and response of each recorded broker."""
    found = []
    for pair in golden_releases("ApiVersions"):
        if pair.note == note:
            found += [(broker, pair.api_version, decoded(pair)) for broker in pair.brokers]
    return found


def decoded(pair: GoldenPair) -> ApiVersionsResponse:
    assert pair.response is not None
    # The response header is the correlation id alone, whatever the version (BA-5).
    response, end = codec(API_VERSIONS, pair.api_version).decode_response(pair.response, 4)
    assert end == len(pair.response)
    assert isinstance(response, ApiVersionsResponse)
    return response


def test_the_recordings_have_a_broker_of_every_line_with_api_versions() -> None:
    surfaces = {(surface.line, surface.mode) for surface in api_versions().surfaces if surface.has_api_versions}
    asked = {KafkaVersion.named(broker) for broker, _, _ in responses("ask")}
    assert {(KafkaVersion.named(f"{line}-{mode}")) for line, mode in surfaces} == asked


@pytest.mark.parametrize(("broker", "version", "response"), responses("ask"))
def test_the_apis_are_those_of_the_kafka_version_in_their_order(
    broker: str, version: int, response: ApiVersionsResponse
) -> None:
    listed = [(api.api_key, (api.min_version, api.max_version)) for api in response.api_keys]
    assert listed == list(KafkaVersion.named(broker).api_versions.items())


@pytest.mark.parametrize(
    ("broker", "version", "response"), [asked for asked in responses("ask") if asked[1] >= NO_FEATURE_VERSION - 1]
)
def test_the_features_are_those_of_the_kafka_version(broker: str, version: int, response: ApiVersionsResponse) -> None:
    features = features_of(KafkaVersion.named(broker))
    least = 0 if version >= NO_FEATURE_VERSION else 1
    assert {(f.name, f.min_version, f.max_version) for f in response.supported_features} == {
        feature for feature in features.supported if feature[1] >= least
    }
    assert {(f.name, f.max_version_level) for f in response.finalized_features} == set(features.finalized)
    assert all(f.min_version_level == f.max_version_level for f in response.finalized_features)
    assert (response.finalized_features_epoch == -1) == (features.epoch == -1)
    assert not response.zk_migration_ready


@pytest.mark.parametrize(
    ("broker", "version", "response"), responses("bad software name") + responses("empty software name")
)
def test_ba_22_an_invalid_software_name_is_rejected(broker: str, version: int, response: ApiVersionsResponse) -> None:
    assert (response.error_code, response.api_keys) == (42, ())
