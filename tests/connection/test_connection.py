"""Both ends of a connection, alone and joined: what one side sends is what the other receives (BA-6 to BA-9, BA-21)."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import registry
from kproto.connection import ClientConnection, ReceivedRequest, ServerConnection, is_answered
from kproto.errors import DecodeError, EncodeError, FrameTooLarge, LocalProtocolError, UnsupportedVersion
from kproto.headers import read_request_header, read_response, request_frame, response_frame
from kproto.messages.k00_produce import ProduceRequest
from kproto.messages.k08_offset_commit import OffsetCommitRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kproto.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.fixture_files import GoldenPair, conversations, golden, golden_apis

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
SPLITS: dict[str, Callable[[bytes], list[bytes]]] = {
    "whole": lambda data: [data],
    "byte by byte": lambda data: [data[at : at + 1] for at in range(len(data))],
    "in halves": lambda data: [data[: len(data) // 2], data[len(data) // 2 :]],
}


def beats(server: ServerConnection, client: ClientConnection, count: int) -> list[ReceivedRequest]:
    return list(server.receive(b"".join(client.send(BEAT, 0) for _ in range(count))))


def well_formed_pairs() -> list[GoldenPair]:
    """Recorded requests that a codec makes, with the answers that a codec reads."""
    pairs = (pair for api in golden_apis() for pair in golden(api))
    return [
        pair
        for pair in pairs
        if pair.response is not None and pair.api_version in registry.versions(pair.api_key) and not has_tail(pair)
    ]


def has_tail(pair: GoldenPair) -> bool:
    decode = registry.codec(pair.api_key, pair.api_version).decode_request
    return decode(pair.request, read_request_header(pair.request).body_position)[1] != len(pair.request)


@pytest.mark.parametrize("split", SPLITS)
def test_a_connected_pair_says_again_what_was_recorded(split: str) -> None:
    """The client's bytes are the recorded ones, correlation ids aside; the server's are the recorded answers."""
    client, server = ClientConnection("golden"), ServerConnection()
    spoken = 0
    for pair in well_formed_pairs():
        header = read_request_header(pair.request)
        if header.client_id != "golden":
            continue
        codec = registry.codec(pair.api_key, pair.api_version)
        request = codec.decode_request(pair.request, header.body_position)[0]
        sent = client.send(request, pair.api_version)
        assert sent[4:8] + sent[12:] == pair.request[:4] + pair.request[8:]
        (received,) = itertools.chain.from_iterable(map(server.receive, SPLITS[split](sent)))
        assert received.decode() == request
        assert pair.response is not None
        recorded = read_response(pair.response, pair.api_key, pair.api_version)[1]
        downgraded = isinstance(recorded, ApiVersionsResponse) and recorded.error_code == 35
        answer = server.send(received, recorded, version=0 if downgraded else None)
        assert answer[8:] == pair.response[4:]
        (event,) = itertools.chain.from_iterable(map(client.receive, SPLITS[split](answer)))
        assert (event.api_key, event.api_version, event.response) == (pair.api_key, pair.api_version, recorded)
        assert client.in_flight == server.in_flight == 0
        spoken += 1
    assert spoken > 1000


def test_the_conversations_of_real_clients_are_read_by_both_ends() -> None:
    """Each connection of each recording; the answers come out as the broker gave them."""
    for recorded in conversations().values():
        for number in {frame.connection for frame in recorded}:
            server = ServerConnection()
            waiting: list[ReceivedRequest] = []
            for frame in recorded:
                if frame.connection != number:
                    continue
                if frame.is_request:
                    waiting += server.receive(len(frame.frame).to_bytes(4, "big") + frame.frame)
                    continue
                request = waiting.pop(0)
                assert request.header.correlation_id == frame.correlation_id
                response = read_response(frame.frame, frame.api_key, frame.api_version)[1]
                downgraded = isinstance(response, ApiVersionsResponse) and response.error_code == 35
                answer = server.send(request, response, version=0 if downgraded else None)
                assert answer[4:] == frame.frame


@given(st.permutations(range(6)))
def test_answers_go_out_in_the_order_of_the_requests_however_they_are_finished(order: list[int]) -> None:
    """BA-8."""
    client, server = ClientConnection(), ServerConnection()
    requests = beats(server, client, 6)
    out = []
    for done, number in enumerate(order):
        out.append(server.send(requests[number], HeartbeatResponse(error_code=number), version=None))
        assert bool(out[-1]) == (set(range(server_out(out))) <= set(order[: done + 1]) and number < server_out(out))
    answers = list(client.receive(b"".join(out)))
    assert [answer.correlation_id for answer in answers] == list(range(6))
    assert [heartbeat_error(answer.response) for answer in answers] == list(range(6))
    assert server.in_flight == client.in_flight == 0


def server_out(out: list[bytes]) -> int:
    """How many answers the bytes hold; a Heartbeat v0 answer has 10 of them."""
    return len(b"".join(out)) // 10


def heartbeat_error(response: object) -> int:
    assert isinstance(response, HeartbeatResponse)
    return response.error_code


def test_an_answer_waits_for_the_one_before_it() -> None:
    client, server = ClientConnection(), ServerConnection()
    first, second = beats(server, client, 2)
    assert server.in_flight == 2
    assert server.send(second, HeartbeatResponse(error_code=2)) == b""
    assert server.in_flight == 2
    both = server.send(first, HeartbeatResponse(error_code=1))
    assert both == bytes.fromhex("00000006 00000000 0001 00000006 00000001 0002")
    assert server.in_flight == 0


def test_requests_keep_their_own_correlation_ids() -> None:
    server = ServerConnection()
    stream = b"".join(request_frame(BEAT, 0, correlation_id=number) for number in (7, -1, 7))
    answers = [server.send(request, HeartbeatResponse(error_code=0)) for request in server.receive(stream)]
    assert [answer[4:8].hex() for answer in answers] == ["00000007", "ffffffff", "00000007"]


def test_a_request_without_an_answer_lets_the_next_one_pass() -> None:
    """BA-9."""
    client, server = ClientConnection(), ServerConnection()
    silent = ProduceRequest(acks=0, timeout_ms=1, topic_data=())
    assert not is_answered(silent)
    assert is_answered(silent.replace(acks=1))
    assert is_answered(BEAT)
    produce, beat = server.receive(client.send(silent, 3) + client.send(BEAT, 0))
    assert client.in_flight == 1
    assert server.send(beat, HeartbeatResponse(error_code=0)) == b""
    (answer,) = client.receive(server.send(produce, None))
    assert answer.correlation_id == 1


def test_bytes_after_a_request_are_ignored_by_the_server() -> None:
    """BA-7."""
    frame = request_frame(BEAT, 0, correlation_id=1)[4:] + b"trailing"
    (request,) = ServerConnection().receive(len(frame).to_bytes(4, "big") + frame)
    assert request.decode() == BEAT
    assert request.body.endswith(b"trailing")


def test_an_unknown_version_is_an_event_and_can_be_answered_in_another() -> None:
    """BA-21."""
    client, server = ClientConnection(), ServerConnection()
    sent = bytearray(client.send(ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3))
    sent[6:8] = (99).to_bytes(2, "big")
    (request,) = server.receive(bytes(sent))
    assert request.header.api_version == 99
    with pytest.raises(UnsupportedVersion):
        request.decode()
    response = ApiVersionsResponse(error_code=35, api_keys=())
    with pytest.raises(UnsupportedVersion):
        server.send(request, response)
    (answer,) = client.receive(server.send(request, response, version=0))
    assert answer.response == response


def test_what_was_refused_to_be_sent_can_be_sent_rightly() -> None:
    client, server = ClientConnection(), ServerConnection()
    (request,) = beats(server, client, 1)
    with pytest.raises(EncodeError):
        server.send(request, HeartbeatResponse(error_code=1 << 20))
    with pytest.raises(LocalProtocolError, match="ApiVersionsResponse is no answer to API key 12"):
        server.send(request, ApiVersionsResponse(error_code=0, api_keys=()))
    assert len(server.send(request, HeartbeatResponse(error_code=1))) == 10


def test_an_answer_is_given_once_and_to_a_request_of_this_connection() -> None:
    client, server = ClientConnection(), ServerConnection()
    first, second = beats(server, client, 2)
    server.send(second, None)
    for request in (second, second._replace(number=2), first._replace(number=-1)):
        with pytest.raises(LocalProtocolError, match="not waiting"):
            server.send(request, None)
    server.send(first, None)
    with pytest.raises(LocalProtocolError, match="not waiting"):
        server.send(first, None)


@pytest.mark.parametrize(
    ("bad", "error"),
    [("ffffffff", FrameTooLarge), ("00000000", DecodeError), ("00000004 00120000", DecodeError)],
)
def test_a_bad_frame_ends_the_connection_after_the_requests_before_it(bad: str, error: type[Exception]) -> None:
    """BA-1, BA-6."""
    server = ServerConnection()
    events = server.receive(request_frame(BEAT, 0, correlation_id=5) + bytes.fromhex(bad))
    assert next(events).header.correlation_id == 5
    with pytest.raises(error):
        next(events)


def test_a_server_has_the_limit_it_was_given() -> None:
    frame = request_frame(BEAT, 0, correlation_id=5)
    assert len(list(ServerConnection(len(frame) - 4).receive(frame))) == 1
    with pytest.raises(FrameTooLarge):
        list(ServerConnection(len(frame) - 5).receive(frame))


def test_a_body_that_does_not_parse_is_told_by_its_field() -> None:
    frame = request_frame(BEAT, 0, correlation_id=1)[4:-1]
    (request,) = ServerConnection().receive(len(frame).to_bytes(4, "big") + frame)
    with pytest.raises(DecodeError, match=r"HeartbeatRequest\.member_id"):
        request.decode()


def test_a_client_refuses_an_answer_to_nothing() -> None:
    with pytest.raises(DecodeError, match="no request is waiting"):
        list(ClientConnection().receive(response_frame(0, 0, b"\0\0")))


def test_a_client_refuses_an_answer_out_of_order() -> None:
    client = ClientConnection()
    client.send(BEAT, 0)
    client.send(BEAT, 0)
    with pytest.raises(DecodeError, match="1, but 0 is next"):
        list(client.receive(response_frame(1, 0, b"\0\0")))
    assert client.in_flight == 2


def test_a_client_that_could_not_make_a_request_expects_no_answer() -> None:
    client = ClientConnection()
    with pytest.raises(UnsupportedVersion):
        client.send(BEAT, 77)
    invalid: Any = BEAT.replace(generation_id="one")
    with pytest.raises(EncodeError):
        client.send(invalid, 0)
    assert client.in_flight == 0
    assert client.send(BEAT, 0)[8:12] == bytes(4)


def test_correlation_ids_begin_again_after_the_largest() -> None:
    client = ClientConnection()
    client._next_correlation_id = 2**31 - 1
    assert client.send(BEAT, 0)[8:12].hex() == "7fffffff"
    assert client.send(BEAT, 0)[8:12].hex() == "00000000"


def test_the_client_id_goes_out_as_given() -> None:
    for client_id in ("", "kproto", None):
        (request,) = ServerConnection().receive(ClientConnection(client_id).send(BEAT, 0))
        assert request.header.client_id == client_id


def test_a_flexible_request_has_a_flexible_header() -> None:
    request = OffsetCommitRequest(group_id="g", topics=())
    (received,) = ServerConnection().receive(ClientConnection().send(request, 8))
    assert received.header.body_position == 11
    assert received.decode() == request
