"""Each API that does nothing in kproto has a response in each version: an error that stops a client, or an empty list.

Requests are made from the declarations, with one item in each array; the responses of 4.4.0 are recorded ones.
"""

from __future__ import annotations

import pytest

from kproto import registry
from kproto.declaration import Struct, fields_of
from kproto.headers import read_request_header
from kproto.messages import APIS
from kproto_server.handlers import HANDLED
from kproto_server.handlers.unsupported import RESPONSES
from kproto_server.observation.error_codes import error_codes
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.broker_state import ask, new_state
from tests.fixture_files import golden_topics
from tests.server.handlers.recorded_topics import differences, fresh_state, response_of
from tests.server.handlers.sample_requests import sample_request

LATEST = KafkaVersion.named()

SERVED = [
    (api_key, version) for api_key, (low, high) in LATEST.api_versions.items() for version in range(low, high + 1)
]
UNSUPPORTED = [(api_key, version) for api_key, version in SERVED if api_key not in HANDLED]


def test_every_key_has_a_handler_or_a_response() -> None:
    assert {APIS[api_key] for api_key in set(LATEST.api_versions) - HANDLED} <= set(RESPONSES)
    assert not {APIS[api_key] for api_key in HANDLED} & set(RESPONSES)


@pytest.mark.parametrize(("api_key", "version"), SERVED)
def test_every_key_gets_a_response_in_every_version_of_latest(api_key: int, version: int) -> None:
    """The response encodes and decodes in the version of the request."""
    request = sample_request(api_key, version)
    codec = registry.codec(api_key, version)
    body = codec.encode_request(request)
    assert codec.decode_request(body, 0) == (request, len(body))
    response = ask(new_state(), request, version)
    if not isinstance(response, Struct):
        response = response.respond()  # a Fetch that waits
    encoded = codec.encode_response(response)
    assert codec.decode_response(encoded, 0)[1] == len(encoded)


@pytest.mark.parametrize(("api_key", "version"), UNSUPPORTED)
def test_an_unsupported_api_returns_its_error_and_no_other(api_key: int, version: int) -> None:
    error_response = RESPONSES[APIS[api_key]]
    response = ask(new_state(), sample_request(api_key, version), version)
    assert set(error_codes(response)) == {error_response.error}


def test_no_error_is_one_that_clients_retry() -> None:
    """A client would ask for ever."""
    assert [name for name, error_response in RESPONSES.items() if error_response.error.retriable] == []


@pytest.mark.parametrize(("api_key", "version"), UNSUPPORTED)
def test_the_parts_of_the_request_are_repeated(api_key: int, version: int) -> None:
    """Each array has as many items as the request's, and they name what those name."""
    request = sample_request(api_key, version)
    response = ask(new_state(), request, version)
    for items in RESPONSES[APIS[api_key]].items:
        has_array = next(field for field in fields_of(type(response)) if field.name == items.response_array)
        if not has_array.versions.covers(version) or "." in items.request_array:
            continue
        asked, returned = getattr(request, items.request_array), getattr(response, items.response_array)
        assert len(asked) == 1
        assert returned
        for field, source in items.copied.items():
            assert getattr(returned[0], field) == (getattr(asked[0], source) if source else asked[0])


@pytest.mark.parametrize("version", [0, 3])
def test_leave_group_refuses_each_member_where_the_version_has_them(version: int) -> None:
    response = ask(new_state(), sample_request(13, version), version)
    assert (response.error_code, len(response.members)) == ((25, 0) if version < 3 else (0, 1))


AS_4_4_0 = {
    "ApiVersions",
    "SaslHandshake",
    "SaslAuthenticate",
    "DescribeAcls",
    "CreateAcls",
    "DeleteAcls",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
    "DescribeClientQuotas",
    "AlterReplicaLogDirs",
    "OffsetForLeaderEpoch",
}
"""APIs that respond like a real broker without security, quotas and log directories."""


def test_responses_are_those_of_a_real_broker_without_security() -> None:
    """BA-20 to BA-24, BA-111, BA-120, delegation tokens, OffsetForLeaderEpoch of empty partitions."""
    pairs = [pair for pair in golden_topics("4.4.0-others") if pair.api in AS_4_4_0]
    state = fresh_state("4.4.0", {})
    state.cluster.create_topic("t", partition_count=2, replication_factor=1)
    metadata = next(pair for pair in golden_topics("4.4.0-others") if pair.api == "Metadata")
    state.cluster.cluster_id = response_of(metadata).cluster_id
    found = list(differences(pairs, state))
    for difference in found:
        ours, theirs = difference.ours, difference.theirs
        if difference.pair.api == "ApiVersions":  # how often a cluster has changed its features is its own matter
            ours, theirs = ({**error_response, "finalized_features_epoch": 0} for error_response in (ours, theirs))
        assert ours == theirs, str(difference)
    assert len(pairs) > 100


def test_sasl_handshake_v1_is_read_like_v0_also_the_second_time() -> None:
    """It has no flexible version: its header never has a tag section (BA-3)."""
    frame = registry.codec(17, 1).encode_request(sample_request(17, 1))
    header = bytes.fromhex("0011000100000001" + "0001" + "63")
    assert [read_request_header(header + frame).body_position for _ in range(3)] == [11, 11, 11]
