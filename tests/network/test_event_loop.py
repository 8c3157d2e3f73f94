"""The event loop by itself: who gets a turn before whom."""

from __future__ import annotations

import socket
from collections.abc import Callable

import trio

from kproto_server.clock import Clock, ClockMode
from kproto_server.network.event_loop import LARGE_OUTGOING_MAX_BYTES, EventLoop
from kproto_server.network.poller import READ
from tests.waiting import LIMIT_S

NOW_MS = 1_000_000


class Reader:
    """Reads a byte a turn."""

    def __init__(self, sock: socket.socket, then: Callable[[bytes], object]) -> None:
        self._socket = sock
        self._then = then

    def on_ready(self, *_: int) -> None:
        self._then(self._socket.recv(1))


def test_a_timer_that_is_due_when_it_is_set_lets_in_what_has_come_by_the_next_round() -> None:
    """Kafka puts it at the end of the coordinator's queue: so members that start together are in one generation."""
    client, sock = socket.socketpair()
    loop = EventLoop(Clock(NOW_MS, 0.0, ClockMode(rate=0.0)))
    seen: list[str] = []
    over = trio.Event()
    tokens: list[trio.lowlevel.TrioToken] = []

    def read(data: bytes) -> None:
        seen.append(data.decode())
        if len(seen) == 1:
            loop.clock.call_at(NOW_MS, due)
            client.send(b"b")  # while the round is under way

    def due() -> None:
        seen.append("due")
        tokens[0].run_sync_soon(over.set)

    async def main() -> None:
        tokens.append(trio.lowlevel.current_trio_token())
        client.send(b"a")
        with trio.fail_after(LIMIT_S):
            await over.wait()

    with client, sock:
        loop.add(sock.fileno(), Reader(sock, read), READ)
        loop.run(main)
    assert seen == ["a", "b", "due"]


class Client:
    """Notes the sizes of the responses that it gets."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def send(self, data: bytes) -> None:
        self.sizes.append(len(data))


def test_large_responses_wait_for_the_end_of_the_iteration_up_to_a_limit() -> None:
    """A large response sends nothing before its time, and many of them never are in memory together."""
    loop, client = EventLoop(Clock(NOW_MS, 0.0, ClockMode(rate=0.0))), Client()
    size = LARGE_OUTGOING_MAX_BYTES // 4
    for count in range(1, 13):
        loop.outgoing.append((client, bytes(size)))
        loop.note_large(size)
        assert len(client.sizes) == count // 5 * 5
    loop.send_outgoing()
    assert client.sizes == [size] * 12
