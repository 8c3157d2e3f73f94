"""One connection's socket by hand: a socket pair, a loop that does not run, and a clock that the test moves.

Method: the test makes the kernel's readiness into calls of `on_ready` itself, so that each step is one step.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from kproto.framing import FrameReader
from kproto.headers import request_frame
from kproto.messages.k01_fetch import FetchRequest
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto_server import handlers
from kproto_server.clock import Clock, ClockMode
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.deferred import DelayedOperation
from kproto_server.network.event_loop import EventLoop
from kproto_server.network.poller import READ, WRITE
from kproto_server.network.transport import Transport
from kproto_server.observation.observe import Observations
from kproto_server.requests.context import ConnectionInfo
from kproto_server.requests.endpoint import TURN_SIZE_BYTES
from tests.coordinator.broker_state import NOW_MS, commit_request, new_state
from tests.coordinator.change_logs import RecordingLog
from tests.network.requests import ALL_TOPICS, long_poll

ERROR, HANGUP = select.EPOLLERR, select.EPOLLHUP
BUFFER_BYTES = 4608
"""About the minimum of Linux for a socket: responses do not fit."""


@dataclass
class Wired:
    """A transport, the client's socket, and how often the transport has closed."""

    loop: EventLoop
    client: socket.socket
    observations: Observations
    transport: Transport = field(init=False)
    closed: int = 0
    _reader: FrameReader = field(default_factory=FrameReader)

    def send(self, *requests: tuple[Any, int]) -> None:
        """Send requests in one piece, numbered from 1, and give the transport a turn."""
        self.client.sendall(b"".join(request_frame(r, v, correlation_id=i) for i, (r, v) in enumerate(requests, 1)))
        self.turn()

    def turn(self) -> int:
        """Give the connection a turn if its socket is ready, as the loop would; return whether it was."""
        ready = dict(self.loop.poller.poll(0))
        mask = ready.get(self.transport.fd, 0)
        if mask:
            self.transport.on_ready(mask, self.loop.clock.now_ms())
            self.loop.send_outgoing()
        return mask

    def proceed(self) -> None:
        """Have the connection proceed if it is runnable, as at the end of an iteration."""
        for connection in self.transport._connection.dispatcher.take_runnable():
            assert connection.on_runnable is not None
            connection.on_runnable()
        self.loop.send_outgoing()

    def log_that_waits(self) -> RecordingLog:
        """Have the coordinator write to a log that is synced when the test calls `settle`."""
        log = RecordingLog(waits=True)
        self.transport._connection.dispatcher.state.coordinator.log = log
        return log

    def advance(self, real_ms: float) -> None:
        """Let real time pass."""
        self.loop.clock.tick(real_ms)
        self.loop.clock.run_due()
        self.loop.send_outgoing()

    def ids(self) -> list[int]:
        """Return the correlation ids of the responses since the last call."""
        try:
            while data := self.client.recv(1 << 20):
                self._reader.feed(data)
        except BlockingIOError:
            pass
        return [int.from_bytes(frame[:4], "big") for frame in self._reader.frames()]

    def ids_until_closed(self) -> list[int]:
        """Give the transport turns until it has closed; return the correlation ids of all responses."""
        found = []
        while not self.closed:
            found += self.ids()
            self.turn()
            self.loop.clock.run_due()
            self.loop.send_outgoing()
            self.transport.close_if_delivered()
        return found + self.ids()


@pytest.fixture
def wired() -> Iterator[Wired]:
    client, sock = socket.socketpair()
    client.setblocking(False)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    state = new_state()
    observations = Observations()
    loop = EventLoop(Clock(NOW_MS, 0.0, ClockMode(rate=0.0)))
    info = ConnectionInfo("/127.0.0.1")
    made = Wired(loop, client, observations)

    def closed(_: Transport) -> None:
        made.closed += 1
        observations.disconnected(info)

    connection = Connection(Dispatcher(state, observations, takes_turns=True), state.cluster.nodes[1], info)
    made.transport = Transport(loop, sock, connection, closed)
    yield made
    made.transport.close()
    client.close()
    loop.poller.close()


GROUPS = (ListGroupsRequest(), 0)
LARGE = (DescribeGroupsRequest(groups=("g",) * TURN_SIZE_BYTES), 0)
TOPICS = (ALL_TOPICS, 1)
POLL = (long_poll(500), 4)
COMMIT = (commit_request("g", {"t": {0: 1}}), 5)


def test_all_requests_of_a_read_get_responses_in_one_turn(wired: Wired) -> None:
    wired.send(GROUPS, TOPICS, GROUPS)
    assert wired.ids() == [1, 2, 3]
    assert wired.turn() == 0, "nothing is left to do"


def test_requests_of_a_client_that_reads_nothing_are_not_read(wired: Wired) -> None:
    """Its requests stay in the kernel; the broker keeps at most the responses to one read."""
    wired.send(*[TOPICS] * 200)
    wired.client.sendall(request_frame(*GROUPS, correlation_id=201))

    assert wired.turn() == 0, "the transport watches neither reads nor writes"
    found: list[int] = []
    while len(found) < 201:
        found += wired.ids()
        wired.turn()
    assert found == list(range(1, 202))


def test_many_responses_are_sent_before_another_client_is_read(wired: Wired) -> None:
    wired.client.sendall(b"".join(request_frame(*TOPICS, correlation_id=number) for number in range(2500)))
    wired.transport.on_ready(READ, wired.loop.clock.now_ms())
    assert wired.loop.outgoing == []
    assert wired.ids()[:2] == [0, 1]
    assert wired.loop.buffer_quotas.unsent_responses.total_bytes > 0
    while wired.turn():
        wired.ids()
    assert wired.loop.buffer_quotas.unsent_responses.total_bytes == 0


def test_a_delayed_connection_is_neither_read_nor_written(wired: Wired) -> None:
    """BA-8."""
    wired.send(POLL)
    wired.client.sendall(request_frame(*GROUPS, correlation_id=2))

    assert wired.turn() == READ, "the transport watches reads until the next bytes arrive"
    assert not wired.turn()
    wired.advance(499)
    assert wired.ids() == []
    wired.advance(500)
    assert wired.ids() == [1]
    assert wired.turn() == READ
    assert wired.ids() == [2]


def test_an_operation_that_completes_while_responses_are_unsent_responds_behind_them(wired: Wired) -> None:
    wired.send(*[TOPICS] * 200, POLL, GROUPS, POLL, GROUPS)
    found: list[int] = []
    for expected in (202, 204):
        delayed = wired.transport._connection.delayed
        assert delayed is not None
        assert delayed.completion is not None
        delayed.completion.complete()
        for _ in range(60):
            wired.proceed()
            found += wired.ids()
            wired.turn()
        assert found == list(range(1, expected + 1))


def test_a_commit_whose_log_is_synced_while_responses_are_unsent_responds_behind_them(wired: Wired) -> None:
    log = wired.log_that_waits()
    for behind, expected in (((), 62), ((GROUPS,), 63)):  # without and with a request that waits for the sync
        wired.send(POLL, *[TOPICS] * 60, COMMIT, *behind)
        wired.advance(wired.loop.clock.real_ms + 500)
        assert wired.transport._unsent
        log.settle()
        wired.proceed()
        found: list[int] = []
        for _ in range(60):
            found += wired.ids()
            wired.turn()
            wired.proceed()
        assert found == list(range(1, expected + 1))


def test_a_commit_that_is_synced_in_the_iteration_of_its_read_responds_behind_earlier_requests(wired: Wired) -> None:
    log = wired.log_that_waits()
    wired.client.sendall(b"".join(request_frame(*r, correlation_id=i) for i, r in enumerate((GROUPS, COMMIT), 1)))
    wired.transport._read_at_turn()
    log.settle()
    wired.proceed()
    assert wired.ids() == [1, 2]


def test_unsent_bytes_are_kept_whoever_sends_behind_them(wired: Wired) -> None:
    """A lost rest of a response would let the client read the next one inside of it."""
    frames = [bytes([number]) * BUFFER_BYTES * 4 for number in range(3)]
    found = bytearray()
    for frame in frames:
        wired.transport.send(frame)
    assert wired.loop.buffer_quotas.unsent_responses.total_bytes == len(wired.transport._unsent)
    while len(found) < sum(map(len, frames)):
        found += wired.client.recv(1 << 20)
        wired.turn()
    assert found == b"".join(frames)
    assert wired.loop.buffer_quotas.unsent_responses.total_bytes == 0


def test_a_long_wait_is_not_idleness(wired: Wired) -> None:
    """The idle time begins at the response (BA-10)."""
    wired.send(POLL)
    assert wired.transport.is_waiting
    wired.advance(500)

    assert wired.ids() == [1]
    assert wired.transport.active_ms == 500.0


def test_a_client_that_reads_its_responses_slowly_is_not_idle(wired: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    """BA-10."""
    wired.send(*[TOPICS] * 200)
    monkeypatch.setattr("kproto_server.network.transport.real_ms", lambda: 9000.0)
    wired.client.recv(1 << 16)

    assert wired.turn() == WRITE
    assert wired.transport.active_ms == 9000.0


def test_a_half_closed_connection_closes_after_all_responses(wired: Wired) -> None:
    """A real broker responds to the long poll at its deadline; here the client's end is the deadline."""
    wired.client.sendall(b"".join(request_frame(*r, correlation_id=i) for i, r in enumerate((GROUPS, POLL, GROUPS), 1)))
    wired.client.shutdown(socket.SHUT_WR)
    wired.turn()
    assert wired.ids() == [1]
    assert wired.ids_until_closed() == [2, 3]
    assert wired.loop.clock.delay_ms() is None


@pytest.mark.parametrize("count", [1, 2])
def test_a_half_closed_connection_gets_the_responses_that_wait_for_the_log(wired: Wired, count: int) -> None:
    """As from a real broker, which reads the end of a client behind the response to its request (BA-8, OS-25)."""
    log = wired.log_that_waits()
    wired.send(*[COMMIT] * count)
    wired.client.shutdown(socket.SHUT_WR)
    assert wired.turn() == READ
    assert not wired.turn(), "nothing is watched until the log is synced"
    log.settle()
    wired.proceed()
    assert wired.ids_until_closed() == list(range(1, count + 1))


def test_a_client_that_closes_while_a_response_waits_for_the_log_is_closed(wired: Wired) -> None:
    wired.log_that_waits()
    wired.send(COMMIT)
    wired.client.close()
    wired.turn()
    assert wired.closed


def test_requests_behind_a_delayed_one_are_read_before_a_response_is_sent(wired: Wired) -> None:
    """They get their responses although the client had sent them, and its end, before the broker looked again."""
    wired.send(POLL)
    wired.client.sendall(request_frame(*POLL, correlation_id=2) + request_frame(*GROUPS, correlation_id=3))
    wired.client.shutdown(socket.SHUT_WR)
    assert wired.turn() == READ
    assert wired.turn() == select.EPOLLRDHUP
    assert wired.ids() == [1]
    assert wired.ids_until_closed() == [2, 3]


def test_a_failed_send_closes_the_connection_and_leaves_no_timer(wired: Wired) -> None:
    """The broker delays no request after a response that it could not send."""
    wired.client.sendall(request_frame(*GROUPS, correlation_id=1) + request_frame(*POLL, correlation_id=2))
    wired.client.close()
    wired.turn()

    assert wired.closed == 1
    assert wired.loop.clock.delay_ms() is None


def test_a_client_that_disconnects_during_a_delayed_request_gets_no_response(wired: Wired) -> None:
    wired.send(POLL)
    wired.client.close()
    while not wired.closed:
        assert wired.turn() & (ERROR | HANGUP | READ), "a delayed connection detects its end"

    assert wired.loop.clock.delay_ms() is None
    wired.advance(500)
    (client,) = wired.observations.snapshot().clients
    assert [seen.count for seen in client.requests] == [1]


def test_finish_responds_to_all_requests_that_were_read(wired: Wired) -> None:
    """Delayed requests and the requests after them get their responses in order, however many there are."""
    wired.send(*[POLL] * 500)
    wired.transport.finish()
    assert wired.ids_until_closed() == list(range(1, 501))


def test_finish_reads_the_bytes_that_have_arrived(wired: Wired) -> None:
    wired.client.sendall(request_frame(*GROUPS, correlation_id=1))
    wired.transport.finish()
    assert wired.ids_until_closed() == [1]


def test_finish_waits_for_a_slow_client(wired: Wired) -> None:
    wired.send(*[TOPICS] * 200, POLL, GROUPS)
    wired.transport.finish()
    for _ in range(3):
        wired.transport.close_if_delivered()
    assert not wired.closed, "the transport still has bytes to send"
    assert wired.ids_until_closed() == list(range(1, 203))


def test_finish_of_a_closed_connection_does_nothing(wired: Wired) -> None:
    wired.transport.close()
    wired.transport.finish()
    wired.transport.close_if_delivered()
    assert wired.closed == 1


def test_invalid_bytes_close_after_the_responses_before_them(wired: Wired) -> None:
    """This holds for a slow client too (BA-6, BA-8)."""
    wired.client.sendall(
        b"".join(request_frame(*TOPICS, correlation_id=i) for i in range(1, 201)) + b"GET / HTTP/1.1\r\n\r\n"
    )
    wired.turn()
    assert not wired.closed
    assert wired.ids_until_closed() == list(range(1, 201))


def test_a_defect_in_a_delayed_operation_closes_only_its_connection(
    wired: Wired, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The exception occurs in a timer of the event loop, which serves all connections (BA-13)."""

    def fail() -> Any:
        raise ZeroDivisionError("a defect")

    def handle(request: FetchRequest, context: Any) -> DelayedOperation:
        return DelayedOperation(context.now_ms + request.max_wait_ms, fail)

    monkeypatch.setattr(handlers, "handler", lambda api_key: handle)
    wired.send(POLL)
    wired.advance(500)

    assert wired.closed == 1
    assert len(caplog.records) == 1


def test_late_in_an_iteration_requests_wait_unread_for_their_turn(wired: Wired) -> None:
    dispatcher = wired.transport._connection.dispatcher
    dispatcher.is_late, dispatcher.has_free_turn = True, False
    wired.send(GROUPS, GROUPS)
    assert wired.turn() == READ
    assert len(dispatcher.turns) == 1
    assert wired.ids() == []
    dispatcher.give_turn()  # the first request
    wired.loop.send_outgoing()
    assert wired.ids() == [1]
    dispatcher.begin_iteration()
    dispatcher.give_turn()
    wired.proceed()
    assert wired.ids() == [2]
    wired.send(GROUPS)
    assert wired.ids() == [1]


def test_a_socket_that_was_read_or_closed_before_its_turn_is_left_alone(wired: Wired) -> None:
    dispatcher = wired.transport._connection.dispatcher
    dispatcher.is_late = True
    wired.send(GROUPS)
    dispatcher.begin_iteration()
    wired.turn()
    assert wired.ids() == [1]
    dispatcher.give_turn()
    dispatcher.is_late = True
    wired.send(GROUPS)
    wired.transport.close()
    dispatcher.give_turn()
    assert wired.closed == 1
    assert not dispatcher.turns


def test_a_clean_shutdown_reads_what_waits_for_its_turn(wired: Wired) -> None:
    wired.transport._connection.dispatcher.is_late = True
    wired.send(GROUPS)
    wired.transport.finish()
    assert wired.ids() == [1]


def test_a_client_that_sends_no_more_waits_for_its_turn_like_others(wired: Wired) -> None:
    """Otherwise clients that close their side would have all their turns at once."""
    dispatcher = wired.transport._connection.dispatcher
    dispatcher.has_free_turn = False
    wired.send(LARGE)
    wired.client.shutdown(socket.SHUT_WR)
    for _ in range(3):
        wired.turn()
    assert wired.turn() == 0, "the transport does not watch the end of a client that it knows"
    assert wired.ids() == []
    dispatcher.give_turn()
    wired.proceed()
    assert wired.ids_until_closed() == [1]
