"""The event loop of a broker: an epoll loop that serves connections, with trio as its guest for everything else."""

# Theory of operation
# ===================
#
# A commit that the commit cache responds to takes a few microseconds. A checkpoint of trio takes as much again, and a
# task or channel for each connection several times that (measured: a task per connection with `receive_some` and
# `send_all` makes the broker three times slower than bare epoll). So connections are not tasks. This loop polls, has
# each ready transport read and handle its requests, and then sends the responses.
#
# Everything that waits in other ways runs under trio in guest mode: signals, shutdown, the closing of idle connections,
# calls from other threads. trio waits for its events in a thread of its own; when it has something to run, it calls
# `post`, and the loop runs it at the end of an iteration. So all of trio's tasks and all connections run in one thread,
# and none of them needs a lock.
#
# One iteration (`_iterate`):
#
#   1. Poll, not longer than until the next timer of the clock is due; not at all if something was posted.
#   2. Have the owner of each ready file descriptor read and handle what has arrived, or accept connections. Responses
#      are collected.
#   3. Send the collected responses. Not earlier: a response wakes its client, which then takes the processor from the
#      broker; with 64 connections that costs a tenth of the throughput. A group commit begins before
#      (`before_sending`).
#   4. Run what was posted by trio and by other threads.
#   5. Run the timers that are due. Timers that were set in this iteration wait for the next one: requests that have
#      arrived by then are handled first. Thus members that start together mostly join the same generation even without
#      an initial rebalance delay, as with a real coordinator, which puts a timeout at the end of its queue.
#   6. Have the log write what the iteration has appended, and the connections proceed whose responses are complete
#      (`at_iteration_end`); send these responses. One costly operation has its turn here (`Dispatcher.turns`): however
#      many wait, other connections are served after each.
#
# Programs that embed a broker run the loop in a thread (`kproto_server.broker.broker`): their own event loop may block,
# or not exist.

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from kproto_server.network.buffer_quota import BufferQuotas
from kproto_server.network.busy_poll import BusyPoll
from kproto_server.network.freed_memory import FreedMemory
from kproto_server.network.poller import READ, Poller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from trio.lowlevel import TrioToken

    from kproto_server.clock import Clock


class ReadyOwner(Protocol):
    """The owner of a registered file descriptor."""

    def on_ready(self, mask: int, now_ms: int) -> None: ...


class Sender(Protocol):
    """A transport with responses to send."""

    def send(self, data: bytes) -> None: ...


LARGE_OUTGOING_MAX_BYTES = 1 << 20
"""When the large responses of an iteration have together more, the loop sends all before it reads another socket. If a
thousand clients fetch much at once, the responses of one iteration would exceed the memory."""

NO_OWNERS: Mapping[int, ReadyOwner] = {}


def real_ms() -> float:
    """Return monotonic real time in milliseconds; `Clock` takes it as an argument."""
    return time.monotonic() * 1000.0


def _nothing() -> None:
    pass


class EventLoop:
    """One loop in one thread. Only `post` may be called from other threads."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.poller: Poller = Poller()
        self.busy_poll: BusyPoll = BusyPoll(self.poller.poll)
        self.buffer_quotas: BufferQuotas = BufferQuotas()
        self.freed_memory: FreedMemory = FreedMemory()
        self.outgoing: list[tuple[Sender, bytes]] = []
        """Responses that were made in this iteration and are sent when all sockets are read."""
        self._large_outgoing_bytes = 0
        """Of the large ones among these."""
        self.before_sending: Callable[[], object] | None = None
        """Called before responses are sent: the log begins to sync what the iteration has appended."""
        self.at_iteration_end: Callable[[], object] | None = None
        """Called when everything else in an iteration is done."""
        self._owners: dict[int, ReadyOwner] = {}
        self._posted: deque[Callable[[], object]] = deque()
        # The poller sleeps in the kernel: a byte in this pipe wakes it when another thread posts an action.
        self._wake_receive, self._wake_send = socket.socketpair()
        self._wake_receive.setblocking(False)
        self._wake_send.setblocking(False)
        self.poller.register(self._wake_receive.fileno(), READ)
        self._wake_lock = threading.Lock()
        self._is_closed = False
        self._is_done = False
        self._outcome: Any = None
        self._token: TrioToken | None = None

    def add(self, fd: int, owner: ReadyOwner, interest: int) -> None:
        """Watch a file descriptor for its owner, who removes it before closing it."""
        self._owners[fd] = owner
        self.poller.register(fd, interest)

    def remove(self, fd: int) -> None:
        """Stop watching a file descriptor."""
        del self._owners[fd]
        self.poller.unregister(fd)

    def post(self, action: Callable[[], object]) -> None:
        """Run an action in the loop's thread, soon. May be called from any thread."""
        # First the action, then the byte: the loop drains the pipe before it runs actions, so none is left over.
        self._posted.append(action)
        with self._wake_lock, contextlib.suppress(BlockingIOError):  # a full pipe wakes the loop, too
            if not self._is_closed:  # trio's thread may still post after the end
                self._wake_send.send(b"\0")

    def iterate_again(self) -> None:
        """Do not sleep before the next iteration; called in the loop's thread."""
        self._posted.append(_nothing)

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        """Run ``main`` under trio, and the loop, until main has returned; return its result.

        An exception that leaves the loop is a defect of the broker: main is cancelled, so that it closes its sockets,
        and the exception is raised when it has ended. Closes the poller.
        """
        import trio

        self.freed_memory.keep_for(0)
        scope = trio.CancelScope()

        async def cancellable() -> Any:
            """Run main; cancellation comes from the loop, by ``scope``, and ends it."""
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
            while not self._is_done:
                self._iterate()
        except BaseException:
            # trio has to run to its end: main closes sockets and files there. Connections are not served meanwhile.
            (self._token.run_sync_soon if self._token else self.post)(scope.cancel)
            while not self._is_done:
                self._poll_and_serve(None, NO_OWNERS)
            raise
        finally:
            self.close()
        return self._outcome.unwrap()

    def close(self) -> None:
        """Close the poller and the pipe; `run` does it at its end, and the owner of a loop that never runs."""
        self.poller.close()
        with self._wake_lock:
            self._is_closed = True
            self._wake_receive.close()
            self._wake_send.close()

    def _finish(self, outcome: Any) -> None:
        self._outcome = outcome
        self._is_done = True

    def _iterate(self) -> None:
        """Run one iteration, as the theory of operation describes it."""
        clock = self.clock
        # Timers set from here on have a higher number, and wait for the next iteration.
        delay_ms, timers_set = clock.delay_ms(), clock.timers_set
        self._poll_and_serve(None if delay_ms is None else delay_ms / 1000.0, self._owners)
        clock.run_due(timers_set)
        if self.at_iteration_end is not None:
            self.at_iteration_end()
        if self.outgoing:
            self.send_outgoing()

    def _poll_and_serve(self, timeout_s: float | None, owners: Mapping[int, ReadyOwner]) -> None:
        """Poll; serve the ready file descriptors that have owners, send responses, run what was posted."""
        ready = self.busy_poll.wait(0.0 if self._posted else timeout_s)
        clock = self.clock
        # Time is read once for an iteration: all requests in it have the same timestamp.
        now_ms = clock.tick(real_ms())
        wake_ups = 0
        for fd, mask in ready:
            # An owner served earlier in this iteration may have removed this one: then there is none any more.
            owner = owners.get(fd)
            if owner is not None:
                owner.on_ready(mask, now_ms)
            elif fd == self._wake_receive.fileno():
                wake_ups = 1
                self._drain_wake_ups()
        # A wake-up alone is no activity of a client: an automatic clock still counts the broker as idle.
        if len(ready) > wake_ups:
            clock.active()
        self.send_outgoing()
        # Only what is here now: an action that posts again must not keep the sockets waiting.
        for _ in range(len(self._posted)):
            self._posted.popleft()()

    def note_large(self, size_bytes: int) -> None:
        """Count a large response in `outgoing`, and send all if they would take too much memory.

        Each large response is not sent at once: it would send those before it, too, and their clients would take the
        processor from the broker. The leader of a group of a thousand members has one in each rebalance.
        """
        self.freed_memory.keep_for(size_bytes)
        self._large_outgoing_bytes += size_bytes
        if self._large_outgoing_bytes > LARGE_OUTGOING_MAX_BYTES:
            self.send_outgoing()

    def send_outgoing(self) -> None:
        """Send the responses that were made in this iteration."""
        # Taken out first: what is called below must not change the list that is iterated.
        outgoing, self.outgoing = self.outgoing, []
        self._large_outgoing_bytes = 0
        if outgoing and self.before_sending is not None:
            self.before_sending()
        for sender, data in outgoing:
            sender.send(data)

    def _drain_wake_ups(self) -> None:
        try:
            while self._wake_receive.recv(4096):
                pass
        except BlockingIOError:
            return
