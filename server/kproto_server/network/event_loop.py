"""The event loop: our own epoll round as host, trio as its guest.

Theory of operation. A commit that is answered from memory costs a few microseconds; a trio checkpoint costs as much
again, a task or a channel several times that (measured: a task per connection with receive_some and send_all is three
times slower than bare epoll). So established connections are served by this loop: poll, read, answer, write, no task
each. Everything that waits is trio's, running as guest of the loop: listeners, signals, parked lifetimes, shutdown,
what a user calls from another thread. trio polls in a thread of its own and posts its turns here through `post`; a
round of the loop runs them between reads. There is one thread that touches state.

Embedders get the same loop in a thread (`kproto_server.broker.broker`): their own event loop may block or not exist.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from kproto_server.network.buffer_quota import Burdens
from kproto_server.network.busy_poll import Lookout
from kproto_server.network.poller import READ, Poller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from trio.lowlevel import TrioToken

    from kproto_server.clock import Clock


class Ready(Protocol):
    """Whoever owns a registered file descriptor."""

    def on_ready(self, mask: int, now_ms: int) -> None: ...


class Sender(Protocol):
    """Whoever has something to send at the end of a round's reads."""

    def send_out(self, data: bytes) -> None: ...


NOBODY: Mapping[int, Ready] = {}


def real_ms() -> float:
    """Monotonic real time in milliseconds; the clock's other argument."""
    return time.monotonic() * 1000.0


class Host:
    """One loop in one thread. `post` is the only method for other threads."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.poller = Poller()
        self.lookout = Lookout(self.poller.poll)
        self.owners: dict[int, Ready] = {}
        self.burdens = Burdens()
        self.outgoing: list[tuple[Sender, bytes]] = []
        """Answers that are sent when everyone who is ready was read, and those of who waited when all are made: a
        client that is woken by its answer takes the processor from us, which for 64 connections is a tenth of what
        they get."""
        self.before_sending: Callable[[], object] | None = None
        """Called before the answers of a round's reads go out: what they tell of is remembered first."""
        self.at_round_end: Callable[[], object] | None = None
        """Called when everything of a round was done, and before the next one waits."""
        self._posted: deque[Callable[[], object]] = deque()
        self._wake_receive, self._wake_send = socket.socketpair()
        self._wake_receive.setblocking(False)
        self._wake_send.setblocking(False)
        self.poller.register(self._wake_receive.fileno(), READ)
        self._wake_lock = threading.Lock()
        self._closed = False
        self._done = False
        self._outcome: Any = None
        self._token: TrioToken | None = None

    def add(self, fd: int, owner: Ready, mask: int) -> None:
        """Watch a file descriptor for its owner."""
        self.owners[fd] = owner
        self.poller.register(fd, mask)

    def remove(self, fd: int) -> None:
        """Stop watching it."""
        del self.owners[fd]
        self.poller.unregister(fd)

    def post(self, action: Callable[[], object]) -> None:
        """Have an action run in the loop's thread, soon; for any thread."""
        self._posted.append(action)
        with self._wake_lock, contextlib.suppress(BlockingIOError):  # a pipe full of wake-ups wakes too
            if not self._closed:  # trio's thread may have a last word after the end
                self._wake_send.send(b"\0")

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        """Run ``main`` under trio as guest, and the loop as its host, until main has ended; return its result.

        A defect of ours that gets out to the loop cancels main, so that its sockets are closed, and is raised then.
        """
        import trio

        scope = trio.CancelScope()

        async def cancellable() -> Any:
            self._token = trio.lowlevel.current_trio_token()
            with scope:
                return await main()

        trio.lowlevel.start_guest_run(
            cancellable,
            run_sync_soon_threadsafe=self.post,
            run_sync_soon_not_threadsafe=self._posted.append,
            done_callback=self._finish,
        )
        try:
            while not self._done:
                self._round()
        except BaseException:
            (self._token.run_sync_soon if self._token else self.post)(scope.cancel)
            while not self._done:
                self._take_turns(None)
            raise
        finally:
            self.poller.close()
            with self._wake_lock:
                self._closed = True
                self._wake_receive.close()
                self._wake_send.close()
        return self._outcome.unwrap()

    def _finish(self, outcome: Any) -> None:
        self._outcome = outcome
        self._done = True

    def _round(self) -> None:
        """Wait until something is ready or due, and do it.

        A timer is not due before the round after the one in which it was set: whoever has sent something by then is
        heard first, as a real coordinator puts what is due at the end of its queue. So members that start together
        are mostly in one generation, though no first rebalance waits.
        """
        clock = self.clock
        delay_ms, timers_set = clock.delay_ms(), clock.timers_set
        self._take_turns(None if delay_ms is None else delay_ms / 1000.0, self.owners)
        clock.run_due(timers_set)
        if self.at_round_end is not None:
            self.at_round_end()
        if self.outgoing:
            self.send_outgoing()

    def _take_turns(self, timeout_s: float | None, owners: Mapping[int, Ready] = NOBODY) -> None:
        """Wait; give everyone whose socket is ready a turn, then all that was posted, which is trio."""
        ready = self.lookout.wait(0.0 if self._posted else timeout_s)
        clock = self.clock
        now_ms = clock.tick(real_ms())
        woken = 0
        for fd, mask in ready:
            owner = owners.get(fd)
            if owner is not None:
                owner.on_ready(mask, now_ms)
            elif fd == self._wake_receive.fileno():
                woken = 1
                self._drain_wake()
        if len(ready) > woken:
            clock.active()
        self.send_outgoing()
        for _ in range(len(self._posted)):
            self._posted.popleft()()

    def send_outgoing(self) -> None:
        """Send what was answered in this round."""
        outgoing, self.outgoing = self.outgoing, []
        if outgoing and self.before_sending is not None:
            self.before_sending()
        for sender, data in outgoing:
            sender.send_out(data)

    def _drain_wake(self) -> None:
        try:
            while self._wake_receive.recv(4096):
                pass
        except BlockingIOError:
            return
