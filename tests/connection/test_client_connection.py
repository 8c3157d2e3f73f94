"""The client's end of a connection against recorded brokers: bytes that it sends, responses that it reads.

Method. Recorded requests are decoded and sent again; the bytes must be the recorded ones. The recorded responses are
fed whole, byte by byte and in halves. Broken streams are written by hand (BA-6 to BA-9, BA-21).
"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from kproto import registry
from kproto.client_connection import ClientConnection, expects_response
from kproto.errors import DecodeError, EncodeError, FrameTooLarge, UnsupportedVersion
from kproto.headers import read_request_header, read_response, response_frame
from kproto.messages.k00_produce import ProduceRequest
from kproto.messages.k08_offset_commit import OffsetCommitRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kproto.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.fixture_files import GoldenPair, golden, golden_apis

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
SPLITS: dict[str, Callable[[bytes], list[bytes]]] = {
    "whole": lambda data: [data],
    "byte by byte": lambda data: [data[at : at + 1] for at in range(len(data))],
    "in halves": lambda data: [data[: len(data) // 2], data[len(data) // 2 :]],
}


def well_formed_pairs() -> list[GoldenPair]:
    """Recorded requests of client "golden" that a codec can write, with their responses."""
    pairs = (pair for api in golden_apis() for pair in golden(api))
    return [
        pair
        for pair in pairs
        if pair.response is not None and pair.api_version in registry.versions(pair.api_key) and not has_tail(pair)
    ]


def has_tail(pair: GoldenPair) -> bool:
    decode = registry.codec(pair.api_key, pair.api_version).decode_request
    return decode(pair.request, read_request_header(pair.request).body_position)[1] != len(pair.request)


def heartbeat_response(correlation_id: int, error_code: int = 0) -> bytes:
    return response_frame(correlation_id, 0, HeartbeatResponse(error_code=error_code).encode(0))


@pytest.mark.parametrize("split", SPLITS)
def test_recorded_requests_are_sent_and_recorded_responses_are_read(split: str) -> None:
    """The sent bytes are the recorded ones, correlation ids aside."""
    client = ClientConnection("golden")
    sent_count = 0
    for pair in well_formed_pairs():
        header = read_request_header(pair.request)
        if header.client_id != "golden":
            continue
        codec = registry.codec(pair.api_key, pair.api_version)
        sent = client.send(codec.decode_request(pair.request, header.body_position)[0], pair.api_version)
        assert sent[4:8] + sent[12:] == pair.request[:4] + pair.request[8:]
        assert pair.response is not None
        recorded = read_response(pair.response, pair.api_key, pair.api_version)[1]
        stream = len(pair.response).to_bytes(4, "big") + sent[8:12] + pair.response[4:]
        (event,) = itertools.chain.from_iterable(map(client.receive, SPLITS[split](stream)))
        assert (event.api_key, event.api_version, event.response) == (pair.api_key, pair.api_version, recorded)
        assert client.in_flight == 0
        sent_count += 1
    assert sent_count > 1000


def test_responses_arrive_in_the_order_of_the_requests() -> None:
    """BA-8."""
    client = ClientConnection()
    for _ in range(6):
        client.send(HEARTBEAT, 0)
    events = list(client.receive(b"".join(heartbeat_response(number, number) for number in range(6))))
    assert [event.correlation_id for event in events] == list(range(6))
    assert [event.response for event in events] == [HeartbeatResponse(error_code=number) for number in range(6)]
    assert client.in_flight == 0


def test_responses_that_are_not_taken_come_with_the_next_call() -> None:
    client = ClientConnection()
    for _ in range(4):
        client.send(HEARTBEAT, 0)
    stream = b"".join(map(heartbeat_response, range(4)))
    client.receive(stream[:5])
    for event in client.receive(stream[5:]):
        assert event.correlation_id == 0
        break
    assert client.in_flight == 3
    client.receive(bytes.fromhex("ffffffff"))
    events = client.receive(b"")
    assert [next(events).correlation_id for _ in range(3)] == [1, 2, 3]
    for rest in (events, client.receive(b"")):
        with pytest.raises(FrameTooLarge):
            next(rest)


def test_a_request_without_a_response_is_not_in_flight() -> None:
    """BA-9."""
    client = ClientConnection()
    silent = ProduceRequest(acks=0, timeout_ms=1, topic_data=())
    assert not expects_response(silent)
    assert expects_response(silent.replace(acks=1))
    assert expects_response(HEARTBEAT)
    client.send(silent, 3)
    client.send(HEARTBEAT, 0)
    assert client.in_flight == 1
    (event,) = client.receive(heartbeat_response(1))
    assert event.correlation_id == 1


def test_unsupported_version_of_api_versions_is_read_in_version_0() -> None:
    """BA-21."""
    client = ClientConnection()
    client.send(ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3)
    response = ApiVersionsResponse(error_code=35, api_keys=())
    (event,) = client.receive(response_frame(0, 0, response.encode(0)))
    assert event.response == response
    assert event.api_version == 3


@pytest.mark.parametrize(
    ("bad", "error"), [("ffffffff", FrameTooLarge), ("00000000", DecodeError), ("00000003 000000", DecodeError)]
)
def test_a_bad_frame_is_refused_after_the_responses_before_it(bad: str, error: type[Exception]) -> None:
    """BA-1, BA-6."""
    client = ClientConnection()
    client.send(HEARTBEAT, 0)
    client.send(HEARTBEAT, 0)
    events = client.receive(heartbeat_response(0) + bytes.fromhex(bad))
    assert next(events).correlation_id == 0
    with pytest.raises(error):
        next(events)


def test_frame_size_max_is_the_size_of_the_largest_frame() -> None:
    frame = heartbeat_response(0)
    for limit, fits in ((len(frame) - 4, True), (len(frame) - 5, False)):
        client = ClientConnection(frame_size_max=limit)
        client.send(HEARTBEAT, 0)
        if fits:
            assert len(list(client.receive(frame))) == 1
        else:
            with pytest.raises(FrameTooLarge):
                list(client.receive(frame))


def test_a_truncated_body_is_refused_with_its_field() -> None:
    client = ClientConnection()
    client.send(HEARTBEAT, 0)
    with pytest.raises(DecodeError, match=r"HeartbeatResponse\.error_code"):
        list(client.receive(bytes.fromhex("00000005 00000000 00")))


def test_a_response_without_a_request_is_refused() -> None:
    with pytest.raises(DecodeError, match="no request expects one"):
        list(ClientConnection().receive(heartbeat_response(0)))


def test_a_response_out_of_order_is_refused() -> None:
    client = ClientConnection()
    client.send(HEARTBEAT, 0)
    client.send(HEARTBEAT, 0)
    with pytest.raises(DecodeError, match="1, but 0 is next"):
        list(client.receive(heartbeat_response(1)))
    assert client.in_flight == 2


def test_a_request_that_cannot_be_encoded_is_not_in_flight() -> None:
    client = ClientConnection()
    with pytest.raises(UnsupportedVersion):
        client.send(HEARTBEAT, 77)
    invalid: Any = HEARTBEAT.replace(generation_id="one")
    with pytest.raises(EncodeError):
        client.send(invalid, 0)
    assert client.in_flight == 0
    assert client.send(HEARTBEAT, 0)[8:12] == bytes(4)


def test_correlation_ids_start_again_after_the_largest() -> None:
    client = ClientConnection()
    client._next_correlation_id = 2**31 - 1
    assert client.send(HEARTBEAT, 0)[8:12].hex() == "7fffffff"
    assert client.send(HEARTBEAT, 0)[8:12].hex() == "00000000"


@pytest.mark.parametrize("client_id", ["", "kproto", None])
def test_the_client_id_is_in_the_request_header(client_id: str | None) -> None:
    sent = ClientConnection(client_id).send(HEARTBEAT, 0)
    assert read_request_header(sent[4:]).client_id == client_id


def test_a_flexible_request_has_a_flexible_header() -> None:
    sent = ClientConnection().send(OffsetCommitRequest(group_id="g", topics=()), 8)
    assert read_request_header(sent[4:]).body_position == 11
