"""A client's socket: bytes that arrive go to the `Connection`, the responses that it returns are sent."""

# Theory of operation
# ===================
#
# A transport has no task and no thread. The event loop calls `on_ready` when the socket can be read or written, and
# `send` when it sends the responses of an iteration; a timer calls `_end_delay`; `Connection.on_runnable` says that the
# connection has something to send. After each of these, `_update` brings what the poller watches in line with the state
# of the connection:
#
#     READY, DEFERRED      watch for reading
#     DELAYED              watch for reading until something arrives, then for a hangup; set a timer for the deadline
#     BLOCKED, DRAINING    do not watch; the connection becomes runnable when the log is synced
#     BACKLOGGED           watch for writing: the connection proceeds in the next iteration, after all others
#     CLOSING              close, after all responses are sent
#
# and whatever the state is, a socket with unsent bytes is watched for writing only.
#
# Backpressure is not reading. A client that does not take its responses, or sends requests behind a long poll, fills
# the buffers of its own socket; the broker holds at most one read of requests and the responses to it. What it does
# hold, an incomplete request or an unsent response, is counted in the buffer quotas of the loop (`buffer_quota`), which
# close the slowest connections when all together hold too much.
#
# A client that ends while its request waits gives up its connection at once, and not when the operation ends. It has
# sent its FIN, which says only that it sends no more: `_on_hangup` makes the responses that the client could still
# read. Without a poller that reports a hangup (elsewhere than on Linux) the connection stays until the operation ends.
#
# Shutdown must not lose responses. Closing a socket that has unread bytes makes the kernel reset the connection, and
# the client loses what it has not received yet. So `finish` handles what was read and then leaves the socket open
# without reading, until `close_if_delivered` finds that the client's kernel has acknowledged everything.

from __future__ import annotations

import logging
import socket
import struct
import sys
from typing import TYPE_CHECKING, Protocol

from kproto_server.connection.connection_state import (
    BACKLOGGED,
    BLOCKED,
    CLOSING,
    DEFERRED,
    DELAYED,
    DRAINING,
    READY,
    WAITING,
)
from kproto_server.network.event_loop import real_ms
from kproto_server.network.poller import HANGUP, READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.clock import Timer
    from kproto_server.connection.connection import Connection
    from kproto_server.connection.connection_state import State
    from kproto_server.network.event_loop import EventLoop

logger = logging.getLogger("kproto")

DEFECT = "connection of %s"
"""Logged with a traceback before the socket is closed: a defect that one client meets ends no other connection."""

READ_SIZE_BYTES = 65536
"""Largest read of a socket: bounds what one connection can do in one iteration of the loop."""

LARGE_RESPONSES_BYTES = 65536
"""Responses of this size are counted (`EventLoop.note_large`)."""

SIOCOUTQNSD = 0x894B
"""Linux: the number of bytes of a socket that were not sent yet, mostly because the client's window is full."""

RESET_AT_CLOSE = struct.pack("ii", 1, 0)
"""A value of SO_LINGER: closing the socket resets the connection, and unsent bytes are lost."""

NOTHING = 0

INTEREST: dict[State, int] = {READY: READ, DEFERRED: READ, BLOCKED: NOTHING, DRAINING: NOTHING, BACKLOGGED: WRITE}
"""What the poller watches for in a state; DELAYED and CLOSING need more than that."""


class ClientSocket(Protocol):
    """The methods of a socket that a transport calls: those of a kernel's socket, or of one with TLS."""

    def recv(self, size: int, /) -> bytes: ...
    def send(self, data: bytes | memoryview, /) -> int: ...
    def fileno(self) -> int: ...
    def setsockopt(self, level: int, option: int, value: bytes, /) -> None: ...
    def close(self) -> None: ...


class Transport:
    """One client's socket. The transport owns it and closes it; it then calls `on_closed`."""

    __slots__ = (
        "_connection", "_deadline", "_has_incomplete", "_interest", "_is_finishing", "_is_queued", "_loop",
        "_on_closed", "_socket", "_unsent", "active_ms", "fd",
    )  # fmt: skip

    def __init__(
        self, loop: EventLoop, sock: ClientSocket, connection: Connection, on_closed: Callable[[Transport], None]
    ) -> None:
        self._loop = loop
        self._socket: ClientSocket = sock
        self._connection = connection
        self._on_closed = on_closed
        self._unsent: bytes | memoryview = b""
        """Responses that the kernel has not taken."""
        self._has_incomplete = False
        """Whether an incomplete request is counted in the buffer quota."""
        self._is_finishing = False
        self._is_queued = False
        """Whether the socket is read when the connection has its turn."""
        self._deadline: Timer | None = None
        """Ends the delayed operation."""
        self._interest = READ
        connection.on_runnable = self._on_runnable
        self.fd: int = sock.fileno()
        """-1 after the socket is closed."""
        self.active_ms: float = real_ms()
        """Real time at which bytes were last received or sent, for `connections.max.idle.ms` (BA-10)."""
        loop.add(self.fd, self, READ)

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits for time, another client or the log; such a connection is not idle (BA-10)."""
        return self._connection.state in WAITING

    @property
    def client(self) -> str:
        """The client's address and id, for the log."""
        return self._connection.client

    @property
    def has_costly_read(self) -> bool:
        """Whether the next read takes long by itself, before any request is handled."""
        return False

    def on_ready(self, mask: int, now_ms: int) -> None:
        """Read or write the socket, which is ready for it; called by the loop."""
        try:
            self._serve(mask, now_ms)
        except Exception:
            logger.exception(DEFECT, self.client)
            self.close()

    def _serve(self, mask: int, now_ms: int) -> None:
        connection = self._connection
        if mask & WRITE:
            self._proceed()
            return
        if connection.state is DELAYED:
            if mask == READ:
                # Most clients send nothing behind a request that waits. Ending the watch only now, instead of when the
                # operation begins, saves two system calls for each member of a group in each rebalance.
                self._watch(HANGUP)
            else:
                self._on_hangup(now_ms)
            return
        if connection.dispatcher.is_late and not connection.has_turn:
            self._queue_read()
            return
        try:
            data = self._socket.recv(READ_SIZE_BYTES)
        except BlockingIOError:
            return  # `finish` reads without knowing whether anything has arrived
        except OSError:
            self.close()
            return
        if not data:
            if connection.state is DEFERRED and mask == READ:
                self._watch(NOTHING)  # the client may read on: `_update` has the end read again behind the responses
            else:
                self.close()
            return
        loop = self._loop
        self.active_ms = loop.clock.real_ms
        responses = connection.receive(data, now_ms)
        if responses:
            # Sent at the end of the iteration, after all other sockets are read (`EventLoop.outgoing`).
            loop.outgoing.append((self, responses))
            if self._has_incomplete:
                self._count_incomplete()
            if len(responses) > LARGE_RESPONSES_BYTES:
                loop.note_large(len(responses))
        else:
            # No response: part of a long request has arrived, or a request waits, or the connection must be closed.
            self._count_incomplete()
            if connection.state is not READY or self._is_finishing:
                self._update()

    def _queue_read(self) -> None:
        """Have the socket read when the connection has its turn: a request that waits for it unread costs less."""
        if not self._is_queued:
            self._is_queued = True
            self._connection.queue_read(self._read_at_turn, is_costly=self.has_costly_read)

    def _read_at_turn(self) -> None:
        self._is_queued = False
        if self.fd >= 0 and self._interest == READ:
            connection = self._connection
            connection.has_turn = True
            self.on_ready(READ, self._loop.clock.now_ms())
            connection.has_turn = False
            # If a response is deferred, it may be ready in this iteration already, and must not overtake these.
            if connection.state is not READY:
                self._loop.send_outgoing()

    def _on_hangup(self, now_ms: int) -> None:
        """End the delayed operation of a client that sends no more, and handle what it has sent behind it.

        An operation with a deadline ends as at the deadline, since the client may read on, but not before its turn. An
        operation that waits for other clients has no response yet: the client gets none.
        """
        connection = self._connection
        try:
            # Before anything is sent: if the client has closed its socket, the response makes its kernel reset the
            # connection, and unread requests are lost.
            data = self._socket.recv(READ_SIZE_BYTES)
        except OSError:
            self.close()
            return
        if data:
            connection.receive(data, now_ms)
        if connection.deadline_ms is None:
            connection.skip_delayed(now_ms)
            self.close()
            return
        if connection.has_turn_to_come:
            self._watch(NOTHING)
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._end_delay()

    def _count_incomplete(self) -> None:
        """Count what a read has left of an incomplete request."""
        size, quota = self._connection.incomplete_bytes, self._loop.buffer_quotas.incomplete_requests
        if size:
            self._has_incomplete = True
            quota.note(self, size, made_progress=False)
            self._loop.freed_memory.keep_for(size)
        elif self._has_incomplete:
            self._has_incomplete = False
            quota.remove(self)

    def send(self, data: bytes | memoryview) -> None:
        """Send responses, and keep what the kernel does not take; called by the loop after all sockets were read."""
        if self.fd < 0:
            return
        unsent = self._unsent
        if unsent and data is not unsent:  # two responses of one iteration: the rest of the first one goes out first
            data = b"".join((unsent, data))
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return
        if sent < len(data):
            self._unsent = memoryview(data)[sent:]
            self._loop.buffer_quotas.unsent_responses.note(self, len(data) - sent, made_progress=sent > 0)
            self._watch(WRITE)
            return
        if self._unsent:
            self._unsent = b""
            self._loop.buffer_quotas.unsent_responses.remove(self)
            if self._connection.pending:  # deferred responses may have become ready meanwhile: `_go_on` left them
                self._connection.make_runnable()
        # In the usual case, READY and watched for reading, there is nothing to bring in line.
        if self._interest != READ or self._connection.state is not READY or self._is_finishing:
            self._update()

    def _proceed(self) -> None:
        """Send what is left; after that, what the connection has to send by now."""
        self.active_ms = real_ms()
        data = self._unsent
        if not data:
            data = self._connection.proceed(self._loop.clock.now_ms())
        if data:
            self.send(data)
        else:
            self._update()

    def _on_runnable(self) -> None:
        try:
            self._go_on()
        except Exception:
            logger.exception(DEFECT, self.client)
            self.close()

    def _go_on(self) -> None:
        if self.fd < 0 or self._unsent:
            return  # `_proceed` follows when the socket is writable
        self._loop.clock.active()
        # The connection may have become runnable for a deferred response, been served since, and be delayed now.
        if self._connection.is_delay_complete:
            if self._deadline is not None:
                self._deadline.cancel()
            self._end_delay()
        else:
            self._proceed()

    def _update(self) -> None:
        """Bring what is watched, and the timer, in line with the state of the connection."""
        if self.fd < 0:
            return
        state = self._connection.state
        if self._unsent:
            self._watch(WRITE)
        elif state is CLOSING:
            self.close()
        elif state is DELAYED:
            self._watch_delayed()
        else:
            interest = INTEREST[state]
            self._watch(NOTHING if interest == READ and self._is_finishing else interest)

    def _watch_delayed(self) -> None:
        if self._connection.is_delay_complete:  # while earlier responses were unsent
            self._connection.make_runnable()
            return
        if self._interest != READ:
            self._watch(HANGUP)
        clock = self._loop.clock
        deadline_ms = clock.now_ms() if self._is_finishing else self._connection.deadline_ms
        # The timer of this operation may be set already: `_update` is called more than once for a state.
        if self._deadline is None and deadline_ms is not None:
            self._deadline = clock.call_at(deadline_ms, self._on_deadline, for_client=True)

    def _watch(self, interest: int) -> None:
        if interest != self._interest:
            self._interest = interest
            self._loop.poller.modify(self.fd, interest)

    def _on_deadline(self) -> None:
        try:
            self._end_delay()
        except Exception:
            logger.exception(DEFECT, self.client)
            self.close()

    def _end_delay(self) -> None:
        """Respond to the delayed request, at its deadline or because it is complete."""
        self._deadline = None
        loop = self._loop
        self.active_ms = loop.clock.real_ms
        responses = self._connection.resume(loop.clock.now_ms())
        if responses:
            loop.outgoing.append((self, responses))
            if len(responses) > LARGE_RESPONSES_BYTES:
                loop.note_large(len(responses))
            # If the connection waits again, it may respond once more in this iteration, behind these responses.
            if self._connection.state is not READY:
                loop.send_outgoing()
        else:
            self._update()

    def replace_socket(self, sock: socket.socket) -> socket.socket:
        """Go on with another socket, and return the former one, which belongs to the caller now."""
        former = self._socket
        assert isinstance(former, socket.socket), "a socket with TLS has its own method"
        self._exchange_socket(sock)
        return former

    def _exchange_socket(self, sock: ClientSocket) -> None:
        self._socket = sock
        self._loop.remove(self.fd)
        self.fd = sock.fileno()
        self._loop.add(self.fd, self, self._interest)

    def finish(self) -> None:
        """Begin a clean shutdown: read what has arrived, respond to it and to delayed requests, then read no more.

        The caller calls `close_if_delivered` from time to time, and `close` when it waits no longer.
        """
        # One last read: requests that arrived before the shutdown are in the socket, and get responses.
        if self._interest == READ and self._connection.state is not DELAYED:
            self._read_at_turn()
            self._loop.send_outgoing()
        self._is_finishing = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._update()

    def drop_backlog(self) -> None:
        """After `finish`: respond to no further request; responses that were made are still sent."""
        self._connection.backlog.clear()

    def close_if_delivered(self) -> None:
        """After `finish`: close the socket if the client's side has all responses."""
        if self.fd >= 0 and self._interest == NOTHING and not self.is_waiting and not undelivered_bytes(self._socket):
            self.close()

    def give_up(self, reason: str) -> None:
        """Close the socket now; the reason is reported and logged."""
        self._connection.give_up(reason)
        self.close()

    def close(self, *, resets: bool = False) -> None:
        """Close the socket now; unsent responses are lost. May be called again.

        ``resets``: by a reset (TCP RST).
        """
        if self.fd < 0:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._connection.abandon()
        self._loop.buffer_quotas.incomplete_requests.remove(self)
        self._loop.buffer_quotas.unsent_responses.remove(self)
        self._loop.remove(self.fd)
        self.fd = -1
        if resets or self._connection.resets:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        self._socket.close()
        self._on_closed(self)


def undelivered_bytes(sock: ClientSocket) -> int:
    """Return how many bytes of a socket have not left this machine's kernel; 0 where the system does not report it."""
    if sys.platform != "linux":
        return 0
    from fcntl import ioctl

    try:
        return int.from_bytes(ioctl(sock, SIOCOUTQNSD, bytes(4)), sys.byteorder)
    except OSError:  # the kernels of some sandboxes do not have it
        return 0
