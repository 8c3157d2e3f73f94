"""A connection without a socket returns the responses to the requests that it receives.

Method: the codec builds the requests, or the test takes their bytes from recordings of real brokers. The test splits
the returned bytes into frames and compares correlation ids. Time is an argument.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kproto.headers import read_response, request_frame
from kproto.messages.k00_produce import ProduceRequest
from kproto.messages.k03_metadata import MetadataRequest, MetadataResponse
from kproto.messages.k05_stop_replica import StopReplicaRequest
from kproto.messages.k07_controlled_shutdown import ControlledShutdownRequest
from kproto.messages.k09_offset_fetch import OffsetFetchRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from kproto_server.connection.connection import Connection
from kproto_server.requests.context import ConnectionInfo
from tests.codec.strategies import Edges
from tests.coordinator.broker_state import NOW_MS, commit_request
from tests.fixture_files import golden
from tests.requests.connections import (
    API_VERSIONS,
    DESCRIBE_GROUPS,
    HTTP,
    LIST_GROUPS,
    METADATA,
    closed,
    framed,
    frames,
    ids,
    list_groups,
    metadata,
    new_connection,
    raw,
    receive,
)

# The order of responses, and requests that arrive in pieces.


def test_a_hundred_requests_in_one_read_get_responses_in_order() -> None:
    """BA-8."""
    connection = new_connection()
    sent = b"".join(metadata(i) if i % 3 else list_groups(i) for i in range(100))

    responses = receive(connection, sent)

    assert ids(responses) == list(range(100))
    for number, response in enumerate(responses):
        api_key, version = (METADATA, 1) if number % 3 else (LIST_GROUPS, 0)
        read_response(response, api_key, version)
    assert connection.close_reason is None


def test_requests_sent_byte_by_byte_get_the_same_responses() -> None:
    sent = list_groups(1) + metadata(2) + list_groups(3, version=3)
    connection = new_connection()
    whole = connection.receive(sent, NOW_MS)
    again = Connection(connection.dispatcher, connection.node, ConnectionInfo("/127.0.0.1"))

    assert b"".join(again.receive(bytes([byte]), NOW_MS) for byte in sent) == whole
    assert ids(frames(whole)) == [1, 2, 3]


@pytest.mark.parametrize("version", [1, 9, 12])
def test_bytes_after_the_body_are_ignored(version: int) -> None:
    """BA-7."""
    connection = new_connection()
    request = metadata(1, version)
    plain = connection.receive(request, NOW_MS)

    assert connection.receive(framed(request[4:] + b"left over"), NOW_MS) == plain
    assert connection.close_reason is None


TAGS = bytes.fromhex("02 d00f 03 616263 e8fb3f 00")
"""Two unknown tagged fields: tag 2000 with three bytes, tag 1048040 with none."""


def test_unknown_tags_of_header_and_body_are_skipped() -> None:
    """BA-7."""
    head = struct.pack(">hhih", LIST_GROUPS, 3, 7, 1) + b"c"
    connection = new_connection()
    plain = connection.receive(framed(head + b"\0" + b"\0"), NOW_MS)

    assert connection.receive(framed(head + TAGS + TAGS), NOW_MS) == plain
    assert ids(frames(plain)) == [7]


def test_a_null_client_id_counts_as_an_empty_one() -> None:
    """BA-4."""
    connection = new_connection()

    assert ids(receive(connection, list_groups(1, client_id=None) + list_groups(2, client_id=""))) == [1, 2]

    (client,) = connection.dispatcher.observations.snapshot().clients
    assert client.client_id == ""
    assert [seen.count for seen in client.requests] == [2]


# Invalid requests.

TOO_LARGE = 104857601
BODY_THAT_ENDS_EARLY = b"\0\0\0\2\0\1a"
NOT_REQUESTS = {
    "an unknown API key": (raw(32000, 0, 2), (-1, -1)),
    "a negative API key": (raw(-1, 0, 2), (-1, -1)),
    "a version that is too new": (raw(METADATA, 14, 2, b"\0"), (METADATA, 14)),
    "a negative version": (raw(METADATA, -1, 2), (METADATA, -1)),
    "a body that ends early": (raw(METADATA, 1, 2, BODY_THAT_ENDS_EARLY), (METADATA, 1)),
    "a negative count": (raw(DESCRIBE_GROUPS, 0, 2, b"\xff\xff\xff\xfe"), (DESCRIBE_GROUPS, 0)),
    "a header that ends early": (framed(b"\0\3\0\1\0\0"), (-1, -1)),
    "size 0": (b"\0\0\0\0", (-1, -1)),
    "a negative size": (b"\x80\0\0\0", (-1, -1)),
    "a size above the limit": (TOO_LARGE.to_bytes(4, "big"), (-1, -1)),
    "HTTP": (HTTP, (-1, -1)),
}


@pytest.mark.parametrize("name", NOT_REQUESTS)
def test_an_invalid_request_closes_the_connection_after_the_responses_before_it(name: str) -> None:
    """The invalid request and the requests after it get no response (BA-1, BA-6, BA-8)."""
    nonsense, (api_key, version) = NOT_REQUESTS[name]
    connection = new_connection()

    responses = receive(connection, list_groups(1) + nonsense + list_groups(3))

    assert ids(responses) == [1]
    assert connection.close_reason
    assert (closed(connection).api_key, closed(connection).api_version) == (api_key, version)
    assert receive(connection, list_groups(4)) == [], "the connection sends no more responses"


@pytest.mark.parametrize("api_key", [71, 72], ids=["GetTelemetrySubscriptions", "PushTelemetry"])
def test_an_unknown_version_of_an_api_that_is_not_advertised_closes(api_key: int) -> None:
    connection = new_connection("4.2")

    assert receive(connection, raw(api_key, 620, 1, b"\0")) == []
    assert connection.close_reason == "version 620 is not served by Kafka version 4.2"


def test_a_frame_of_the_maximum_size_is_served_and_one_more_byte_closes() -> None:
    """BA-1."""
    request = list_groups(1)
    limit = len(request) + 96
    connection = new_connection(settings={"socket.request.max.bytes": str(limit)})

    assert ids(receive(connection, framed(request[4:].ljust(limit, b"\0")))) == [1]
    assert connection.close_reason is None
    assert receive(connection, framed(request[4:].ljust(limit + 1, b"\0"))) == []
    assert connection.close_reason == f"frame size {limit + 1} is not within 0..{limit}"


def test_produce_versions_that_4_x_only_advertises_close_the_connection() -> None:
    """ApiVersions lists versions 0 to 13, but versions 0 to 2 close the connection (BA-25)."""
    connection = new_connection("4.4")
    produce = request_frame(ProduceRequest(acks=1, timeout_ms=1, topic_data=()), 2, correlation_id=1)

    assert receive(connection, produce) == []
    assert connection.close_reason == "version 2 is not served by Kafka version 4.4"


# ApiVersions is the only API that responds to an unknown version.

FALLBACKS = [
    pytest.param(release, pair, id=f"{release}-v{pair.api_version}")
    for release in ("0.10.2.2", "1.1.1", "2.0.1", "2.8.2", "3.9.2", "4.4.0")
    for pair in golden("ApiVersions")
    if release in pair.brokers and "fallback" in pair.note
]


@pytest.mark.parametrize(("release", "pair"), FALLBACKS)
def test_a_too_new_version_of_api_versions_gets_the_response_of_a_real_broker(release: str, pair: Any) -> None:
    """The bytes are those of the recording: v0, UNSUPPORTED_VERSION, from 2.4 on with the served versions (BA-21)."""
    connection = new_connection(release)

    assert receive(connection, framed(pair.request)) == [pair.response]
    assert ids(receive(connection, list_groups(5))) == [5], "the connection stays open"


@pytest.mark.parametrize("kafka_version", ["2.0", "2.8", "3.9", "4.4"])
def test_the_body_of_a_too_new_api_versions_request_is_not_read(kafka_version: str) -> None:
    """BA-21."""
    connection = new_connection(kafka_version)

    (frame,) = receive(connection, raw(API_VERSIONS, 99, 1, b"\0\xff\xff\xff\xff not a body"))

    assert read_response(frame, ApiVersionsResponse, 99)[1].error_code == 35
    assert connection.close_reason is None


@pytest.mark.parametrize("kafka_version", ["0.8.2", "0.9"])
def test_before_0_10_api_versions_closes_the_connection(kafka_version: str) -> None:
    """These versions do not have the API (BA-6)."""
    connection = new_connection(kafka_version)

    assert receive(connection, request_frame(ApiVersionsRequest(), 0, correlation_id=1)) == []
    assert (
        connection.close_reason
        == f"API key 18 is not served by Kafka version {connection.dispatcher.state.kafka_version.name}"
    )


# 0.8 does not check versions.


@pytest.mark.parametrize("version", [1, 7, 9, 13])
def test_0_8_2_reads_an_unknown_version_as_its_newest(version: int) -> None:
    """0.8.2 has only Metadata v0, whose empty list requests all topics (BA-30, fixtures/PROVENANCE.md).

    0.8 reads the tags in the header of a flexible version as the beginning of the body.
    """
    connection = new_connection("0.8.2")

    (frame,) = receive(connection, raw(METADATA, version, 1, b"\0\0\0\0"))

    _, response = read_response(frame, MetadataResponse, 0)
    assert {topic.name for topic in response.topics} == {"t", "u", "__consumer_offsets"}


def test_0_8_2_rejects_an_unknown_version_of_offset_commit() -> None:
    connection = new_connection("0.8.2")
    commit = commit_request("g", {"t": {0: 5}})

    assert ids(receive(connection, request_frame(commit, 1, correlation_id=1))) == [1]
    assert receive(connection, request_frame(commit, 2, correlation_id=2)) == []
    assert (
        connection.close_reason
        == f"version 2 is not served by Kafka version {connection.dispatcher.state.kafka_version.name}"
    )


def test_0_9_checks_versions() -> None:
    """BA-6."""
    connection = new_connection("0.9")

    assert receive(connection, raw(METADATA, 1, 1, b"\0\0\0\0")) == []
    assert (
        connection.close_reason
        == f"version 1 is not served by Kafka version {connection.dispatcher.state.kafka_version.name}"
    )


# Reasons that name what the client does wrong.


@pytest.mark.parametrize(
    ("data", "protocol"),
    [
        (bytes.fromhex("16030100c8010000c40303"), "TLS"),
        (bytes.fromhex("1603030200010001fc0303"), "TLS"),
        (HTTP, "HTTP"),
        (b"POST /topics/t HTTP/1.1\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n", "HTTP"),
    ],
)
def test_another_protocol_is_named(data: bytes, protocol: str) -> None:
    connection = new_connection()
    assert connection.receive(data, NOW_MS) == b""
    assert connection.close_reason is not None
    assert connection.close_reason.endswith(f": the peer speaks {protocol} instead of Kafka's protocol")


def test_another_size_names_no_protocol() -> None:
    connection = new_connection()
    connection.receive(b"\x7f\0\0\0", NOW_MS)
    assert connection.close_reason == "frame size 2130706432 is not within 0..104857600"


def with_header_version(frame: bytes, version: int) -> bytes:
    """Return a request of client id "c" with the header of another version."""
    body = frame[4:15] + (frame[16:] if version == 1 else b"\0" + frame[15:])
    return framed(body)


@pytest.mark.parametrize(
    ("request_", "version", "reason"),
    [
        (ApiVersionsRequest(client_software_name="x"), 3, "ApiVersions v3 has header version 2"),
        (ListGroupsRequest(), 3, "ListGroups v3 has header version 2"),
        (MetadataRequest(topics=()), 9, "Metadata v9 has header version 2"),
        (OffsetFetchRequest(group_id="g", topics=()), 1, "OffsetFetch v1 has header version 1"),
    ],
    ids=str,
)  # fmt: skip
def test_a_header_of_the_wrong_version_is_named(request_: Any, version: int, reason: str) -> None:
    frame = request_frame(request_, version, correlation_id=7, client_id="c")
    wrong = 3 - int(reason[-1])
    connection = new_connection()
    assert connection.receive(with_header_version(frame, wrong), NOW_MS) == b""
    assert connection.close_reason == f"{reason}, but the request has header version {wrong}"


def test_an_api_that_does_nothing_is_logged_once_for_each_software(caplog: pytest.LogCaptureFixture) -> None:
    connection = new_connection("2.8")
    stops = request_frame(Edges().of(StopReplicaRequest, 3), 3, correlation_id=7, client_id="admin")
    ends = request_frame(Edges().of(ControlledShutdownRequest, 3), 3, correlation_id=8, client_id="admin")
    for _ in range(2):
        for frame in (stops, ends):
            assert receive(connection, frame)
    connection.info.software_name, connection.info.software_version = "librdkafka", "2.3.0"
    for _ in range(2):
        assert receive(connection, stops)
    assert [record.getMessage() for record in caplog.records] == [
        "StopReplica does nothing here; sent by client id 'admin'",
        "ControlledShutdown does nothing here; sent by client id 'admin'",
        "StopReplica does nothing here; sent by client id 'admin', 'librdkafka 2.3.0'",
    ]
