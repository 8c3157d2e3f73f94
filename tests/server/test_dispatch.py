"""A session fed by hand: frames in, answers out, without a socket.

Method: requests are built by the codec, or taken byte for byte from recordings of real brokers; what a session returns
is cut into frames and looked at by correlation id. Time is an argument.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Any

import pytest

from kproto.framing import FrameReader
from kproto.headers import read_response, request_frame
from kproto.messages.k00_produce import ProduceRequest
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from kproto_server import handlers
from kproto_server.call import CloseConnection, ConnectionInfo, Wait
from kproto_server.dispatch import ANSWERS_SIZE_MAX_BYTES, Dispatcher, Session
from kproto_server.observation.observe import Observations
from tests.coordinator.broker_state import NOW_MS, commit_request, new_state
from tests.fixture_files import golden

if TYPE_CHECKING:
    from kproto.declaration import Request
    from kproto_server.observation.observed import ClosedSeen

METADATA, DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS = 3, 15, 16, 18
"""API keys."""
MAX_WAIT_MS = 500
HTTP = b"GET / HTTP/1.1\r\nHost: localhost:9092\r\n\r\n"


def new_session(profile: str = "latest", settings: dict[str, str] | None = None, topics: int | None = None) -> Session:
    names = None if topics is None else {f"topic-{number}": 1 for number in range(topics)}
    state = new_state(profile, settings=settings, topics=names)
    return Session(Dispatcher(state, Observations()), state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))


def receive(session: Session, data: bytes, now_ms: int = NOW_MS) -> list[bytes]:
    return frames(session.receive(data, now_ms))


def frames(data: bytes) -> list[bytes]:
    """Cut answers apart; there must be no rest."""
    reader = FrameReader()
    reader.feed(data)
    found = list(reader.frames())
    assert reader.buffered == 0, "an answer is not whole"
    return found


def ids(answers: list[bytes]) -> list[int]:
    return [int.from_bytes(answer[:4], "big", signed=True) for answer in answers]


def metadata(correlation_id: int, version: int = 1, **fields: Any) -> bytes:
    return request_frame(MetadataRequest(topics=None, **fields), version, correlation_id=correlation_id, client_id="c")


def list_groups(correlation_id: int, version: int = 0, client_id: str | None = "c") -> bytes:
    return request_frame(ListGroupsRequest(), version, correlation_id=correlation_id, client_id=client_id)


def long_poll(correlation_id: int, max_wait_ms: int = MAX_WAIT_MS) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="t", partitions=(partition,))
    request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=(topic,))
    return request_frame(request, 4, correlation_id=correlation_id, client_id="c")


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def raw(api_key: int, version: int, correlation_id: int, body: bytes = b"") -> bytes:
    """A request with header v1 and no client id."""
    return framed(struct.pack(">hhih", api_key, version, correlation_id, -1) + body)


def closed(session: Session) -> ClosedSeen:
    """What was observed of the one frame that closed the connection."""
    clients = session.dispatcher.observations.snapshot().clients
    (seen,) = (seen for client in clients for seen in client.closed)
    return seen


# Order and pieces.


def test_a_hundred_requests_in_one_read_are_answered_in_their_order() -> None:
    """BA-8."""
    session = new_session()
    sent = b"".join(metadata(i) if i % 3 else list_groups(i) for i in range(100))

    answers = receive(session, sent)

    assert ids(answers) == list(range(100))
    for number, answer in enumerate(answers):
        api_key, version = (METADATA, 1) if number % 3 else (LIST_GROUPS, 0)
        read_response(answer, api_key, version)
    assert session.closed is None


def test_byte_by_byte_is_answered_as_in_one_piece() -> None:
    sent = list_groups(1) + metadata(2) + list_groups(3, version=3)
    session = new_session()
    whole = session.receive(sent, NOW_MS)
    again = Session(session.dispatcher, session.node, ConnectionInfo("/127.0.0.1"))

    assert b"".join(again.receive(bytes([octet]), NOW_MS) for octet in sent) == whole
    assert ids(frames(whole)) == [1, 2, 3]


@pytest.mark.parametrize("version", [1, 9, 12])
def test_bytes_after_the_body_are_ignored(version: int) -> None:
    """BA-7."""
    session = new_session()
    request = metadata(1, version)
    plain = session.receive(request, NOW_MS)

    assert session.receive(framed(request[4:] + b"left over"), NOW_MS) == plain
    assert session.closed is None


TAGS = bytes.fromhex("02 d00f 03 616263 e8fb3f 00")
"""Two tagged fields that nobody knows: number 2000 of three bytes, number 1048040 of none."""


def test_unknown_tags_of_header_and_body_are_skipped() -> None:
    """BA-7."""
    head = struct.pack(">hhih", LIST_GROUPS, 3, 7, 1) + b"c"
    session = new_session()
    plain = session.receive(framed(head + b"\0" + b"\0"), NOW_MS)

    assert session.receive(framed(head + TAGS + TAGS), NOW_MS) == plain
    assert ids(frames(plain)) == [7]


def test_a_null_client_id_counts_as_an_empty_one() -> None:
    """BA-4."""
    session = new_session()

    assert ids(receive(session, list_groups(1, client_id=None) + list_groups(2, client_id=""))) == [1, 2]

    (client,) = session.dispatcher.observations.snapshot().clients
    assert client.client_id == ""
    assert [seen.count for seen in client.requests] == [2]


# What makes no sense.

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
def test_what_makes_no_sense_closes_and_what_came_before_is_answered(name: str) -> None:
    """BA-1, BA-6, BA-8: no answer to it, none to what follows."""
    nonsense, (api_key, version) = NOT_REQUESTS[name]
    session = new_session()

    answers = receive(session, list_groups(1) + nonsense + list_groups(3))

    assert ids(answers) == [1]
    assert session.closed
    assert (closed(session).api_key, closed(session).api_version) == (api_key, version)
    assert receive(session, list_groups(4)) == [], "nothing is answered any more"


def test_a_frame_of_just_the_limit_is_answered_and_one_more_byte_closes() -> None:
    """BA-1."""
    request = list_groups(1)
    limit = len(request) + 96
    session = new_session(settings={"socket.request.max.bytes": str(limit)})

    assert ids(receive(session, framed(request[4:].ljust(limit, b"\0")))) == [1]
    assert session.closed is None
    assert receive(session, framed(request[4:].ljust(limit + 1, b"\0"))) == []
    assert session.closed == f"frame size {limit + 1} is not within 0..{limit}"


def test_produce_that_4_x_only_advertises_closes() -> None:
    """BA-25: ApiVersions names 0 to 13, and 0 to 2 close the connection all the same."""
    session = new_session("4.4")
    produce = request_frame(ProduceRequest(acks=1, timeout_ms=1, topic_data=()), 2, correlation_id=1)

    assert receive(session, produce) == []
    assert session.closed == "version 2 is not served by profile 4.4"


# ApiVersions, the one API that answers a version it does not know.

FALLBACKS = [
    pytest.param(release, pair, id=f"{release}-v{pair.api_version}")
    for release in ("0.10.2.2", "1.1.1", "2.0.1", "2.8.2", "3.9.2", "4.4.0")
    for pair in golden("ApiVersions")
    if release in pair.brokers and "fallback" in pair.note
]


@pytest.mark.parametrize(("release", "pair"), FALLBACKS)
def test_a_too_new_version_of_api_versions_gets_the_answer_of_a_real_broker(release: str, pair: Any) -> None:
    """BA-21, byte for byte as recorded: v0's layout, error 35, from 2.4 on with the versions that would do."""
    session = new_session(release)

    assert receive(session, framed(pair.request)) == [pair.response]
    assert ids(receive(session, list_groups(5))) == [5], "and the connection stays"


@pytest.mark.parametrize("profile", ["2.0", "2.8", "3.9", "4.4"])
def test_the_body_of_such_a_request_is_not_read(profile: str) -> None:
    """BA-21."""
    session = new_session(profile)

    (answer,) = receive(session, raw(API_VERSIONS, 99, 1, b"\0\xff\xff\xff\xff not a body"))

    assert read_response(answer, ApiVersionsResponse, 99)[1].error_code == 35
    assert session.closed is None


@pytest.mark.parametrize("profile", ["0.8.2", "0.9"])
def test_before_0_10_api_versions_closes(profile: str) -> None:
    """BA-6: there is no such API yet."""
    session = new_session(profile)

    assert receive(session, request_frame(ApiVersionsRequest(), 0, correlation_id=1)) == []
    assert session.closed == f"API key 18 is not served by profile {session.dispatcher.state.profile.name}"


# 0.8 checks no version.


@pytest.mark.parametrize("version", [1, 7, 9, 13])
def test_0_8_2_reads_a_version_it_does_not_know_as_its_newest(version: int) -> None:
    """fixtures/PROVENANCE.md: Metadata v0 is all there is, and its empty list asks for all topics (BA-30).

    A flexible version's header has tags, which 0.8 takes for the beginning of the body.
    """
    session = new_session("0.8.2")

    (answer,) = receive(session, raw(METADATA, version, 1, b"\0\0\0\0"))

    _, response = read_response(answer, MetadataResponse, 0)
    assert {topic.name for topic in response.topics} == {"t", "u", "__consumer_offsets"}


def test_0_8_2_refuses_a_version_of_offset_commit_that_it_does_not_know() -> None:
    session = new_session("0.8.2")
    commit = commit_request("g", {"t": {0: 5}})

    assert ids(receive(session, request_frame(commit, 1, correlation_id=1))) == [1]
    assert receive(session, request_frame(commit, 2, correlation_id=2)) == []
    assert session.closed == f"version 2 is not served by profile {session.dispatcher.state.profile.name}"


def test_0_9_checks_versions() -> None:
    """BA-6."""
    session = new_session("0.9")

    assert receive(session, raw(METADATA, 1, 1, b"\0\0\0\0")) == []
    assert session.closed == f"version 1 is not served by profile {session.dispatcher.state.profile.name}"


# Requests that wait.


def test_a_parked_fetch_blocks_what_stands_behind_it_and_is_answered_in_its_place() -> None:
    """BA-8, BA-71."""
    session = new_session()

    assert ids(receive(session, list_groups(1) + long_poll(2) + list_groups(3) + metadata(4))) == [1]
    assert session.parked is not None
    assert session.parked.wait.deadline_ms == NOW_MS + MAX_WAIT_MS
    assert receive(session, list_groups(5)) == [], "not even what comes later"

    answers = frames(session.resume(NOW_MS + MAX_WAIT_MS))

    assert ids(answers) == [2, 3, 4, 5]
    _, response = read_response(answers[0], FetchResponse, 4)
    assert response.responses[0].partitions[0].error_code == 0
    assert session.parked is None


def test_a_second_long_poll_waits_from_the_end_of_the_first() -> None:
    """BA-8: it is looked at only then."""
    session = new_session()
    receive(session, long_poll(1) + long_poll(2))

    assert ids(frames(session.resume(NOW_MS + MAX_WAIT_MS))) == [1]
    assert session.parked is not None
    assert session.parked.wait.deadline_ms == NOW_MS + 2 * MAX_WAIT_MS


def test_nonsense_behind_a_parked_request_closes_after_its_answer() -> None:
    """BA-8: nobody has looked at it before."""
    session = new_session()

    assert receive(session, long_poll(1) + HTTP) == []
    assert session.closed is None
    assert ids(frames(session.resume(NOW_MS + MAX_WAIT_MS))) == [1]
    assert session.closed


# Bounds.


def test_answers_wait_until_those_before_them_are_taken() -> None:
    """A read holds thousands of requests that ask for everything: the answers to all of them have no bound."""
    session = new_session(topics=500)
    sent = b"".join(metadata(i) for i in range(400))

    answers = receive(session, sent)

    largest = max(map(len, answers)) + 4
    assert ANSWERS_SIZE_MAX_BYTES <= sum(len(a) + 4 for a in answers) < ANSWERS_SIZE_MAX_BYTES + largest
    assert session.backlog
    while session.backlog:
        more = frames(session.proceed(NOW_MS))
        assert more, "it goes on"
        answers += more
    assert ids(answers) == list(range(400))


def test_nonsense_behind_a_backlog_closes_after_its_answers() -> None:
    session = new_session(topics=500)
    answers = receive(session, b"".join(metadata(i) for i in range(400)) + HTTP)

    while session.closed is None:
        answers += frames(session.proceed(NOW_MS))

    assert ids(answers) == list(range(400))


# Defects of ours.


def with_handler(monkeypatch: pytest.MonkeyPatch, handle: Any) -> None:
    """Put a handler in the place of ListGroups."""
    real = handlers.handler
    monkeypatch.setattr(handlers, "handler", lambda api_key: handle if api_key == LIST_GROUPS else real(api_key))


def defective(*_: object) -> Any:
    raise ZeroDivisionError("a defect")


def wait_for_a_defect(request: Request, call: Any) -> Any:
    return Wait(call.now_ms + 1, lambda: defective(request, call))


def test_a_handler_that_fails_closes_its_connection_alone_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """BA-13."""
    with_handler(monkeypatch, defective)
    session = new_session()
    other = Session(session.dispatcher, session.node, ConnectionInfo("/127.0.0.1"))

    with caplog.at_level(logging.ERROR, "kproto"):
        assert ids(receive(session, metadata(1) + list_groups(2) + metadata(3))) == [1]

    assert session.closed == "the broker failed on this request; its log says how"
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    assert record.getMessage() == "API key 16 version 0 from 'c'"
    assert ids(receive(other, metadata(1))) == [1]


def test_a_parked_request_whose_answer_fails_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """BA-13: nothing may get out to the loop, which serves all the others."""
    with_handler(monkeypatch, wait_for_a_defect)
    session = new_session()
    receive(session, list_groups(1) + metadata(2))

    with caplog.at_level(logging.ERROR, "kproto"):
        assert session.resume(NOW_MS + 1) == b""

    assert session.closed == "the broker failed on this request; its log says how"
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_an_answer_that_has_no_form_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with_handler(monkeypatch, lambda request, call: MetadataResponse(brokers=(), topics=()))
    session = new_session()

    assert receive(session, list_groups(1)) == []
    assert session.closed == "the broker failed on this request; its log says how"
    assert len(caplog.records) == 1


def test_a_defect_of_the_memory_closes_its_connection_and_keeps_the_answers_before_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """BA-13, D13: the shorter way of a repeated commit is in nobody's care but the session's."""
    monkeypatch.setattr("kproto_server.memo.CommitMemo.answer", defective)
    session = new_session()
    commits = [request_frame(commit_request("g", {"t": {0: i}}), 5, correlation_id=i) for i in range(4)]

    assert ids(receive(session, b"".join(commits))) == [0, 1]
    assert session.closed == "the broker failed on this request; its log says how"
    assert len(caplog.records) == 1


def test_a_handler_may_close_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """BA-6: a defect of the client, which is observed and no error of ours."""

    def refuse(request: Request, call: Any) -> Any:
        raise CloseConnection("not like this")

    with_handler(monkeypatch, refuse)
    session = new_session()

    assert ids(receive(session, metadata(1) + list_groups(2))) == [1]
    assert session.closed == closed(session).reason == "not like this"


def test_each_request_is_observed_with_its_version_and_error() -> None:
    session = new_session()
    unknown = MetadataRequest(topics=(MetadataRequestTopic(name="no-such"),), allow_auto_topic_creation=False)
    receive(session, request_frame(unknown, 4, correlation_id=1, client_id="c"))
    receive(session, request_frame(FindCoordinatorRequest(key="g"), 1, correlation_id=2, client_id="c"))

    (client,) = session.dispatcher.observations.snapshot().clients

    assert [(seen.api_key, seen.api_version, seen.count) for seen in client.requests] == [(3, 4, 1), (10, 1, 1)]
    assert [(seen.api_key, seen.error_code) for seen in client.errors] == [(3, 3)]
