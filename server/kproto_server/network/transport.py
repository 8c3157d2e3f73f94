"""A connection's socket: read what is there, hand it to the session, send what it answers.

Backpressure is by not reading: while answers are unsent, or a request is parked, the socket is not watched for
reading, so a client that does not read its answers, or pipelines behind a long poll, fills its own buffers, not ours.
Most clients send nothing behind a request that is parked, so the watch is ended only when something comes: two calls of
the kernel less for each member at each rebalance.
What is held for it all the same, half a request or what is left of an answer, is counted with that of all others
(`burden`).

The end of a broker is no reason to lose answers: closing a socket that has unread bytes resets the connection, and with
it goes what the kernel has not delivered yet. So `finish` leaves a connection open until the client's side has it all.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kproto_server.network.event_loop import real_ms
from kproto_server.network.poller import READ, WRITE

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from kproto_server.clock import Timer
    from kproto_server.network.event_loop import Host
    from kproto_server.requests.connection import Session

READ_SIZE_BYTES = 65536
"""Octets taken from a socket at once: bounds what one connection can do in one round of the loop."""

LARGE_ANSWERS_BYTES = 65536
"""Answers that are sent before anybody else is read: of a thousand clients that fetch much at once, a round's answers
together would be more than there is memory."""

SIOCOUTQNSD = 0x894B
"""Linux: the bytes of a socket that were not sent yet, for lack of the other side's window mostly."""


class Connection:
    """One client's socket; owned by the listener that accepted it, which `on_closed` tells."""

    __slots__ = (
        "_deadline", "_finishing", "_host", "_mask", "_on_closed", "_session", "_socket", "_unfinished", "_unsent",
        "active_ms", "fd",
    )  # fmt: skip

    def __init__(
        self, host: Host, sock: socket.socket, session: Session, on_closed: Callable[[Connection], None]
    ) -> None:
        self._host = host
        self._socket = sock
        self._session = session
        self._on_closed = on_closed
        self._unsent: bytes | memoryview = b""
        self._unfinished = False
        """Whether part of a request is counted as held."""
        self._finishing = False
        self._deadline: Timer | None = None
        self._mask = READ
        session.on_released = self._released
        self.fd = sock.fileno()
        self.active_ms = real_ms()
        """Real time when bytes last came or went, for connections.max.idle.ms (BA-10)."""
        host.add(self.fd, self, READ)

    @property
    def parked(self) -> bool:
        """Whether a request waits, for time to pass or for the disk; such a connection is not idle (BA-10)."""
        return self._session.parked is not None or bool(self._session.held)

    def on_ready(self, mask: int, now_ms: int) -> None:
        """Called by the loop when the socket is ready."""
        session = self._session
        if mask & WRITE:
            self._go_on()
            return
        if session.parked is not None and mask == READ:
            self._watch(0)
            return
        try:
            data = self._socket.recv(READ_SIZE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        host = self._host
        self.active_ms = host.clock.real_ms
        answers = session.receive(data, now_ms)
        if answers:
            host.outgoing.append((self, answers))
            if self._unfinished:
                self._count_unfinished()
            if len(answers) > LARGE_ANSWERS_BYTES:
                host.send_outgoing()
        else:
            self._count_unfinished()
            if session.backlog or session.held or session.parked or session.closed or self._finishing:
                self._settle()

    def _count_unfinished(self) -> None:
        """A read has brought no answer: it may have been part of a long request."""
        size, burden = self._session.unfinished_bytes, self._host.burdens.unfinished
        if size:
            self._unfinished = True
            burden.hold(self, size, anew=False)
        elif self._unfinished:
            self._unfinished = False
            burden.forget(self)

    def send_out(self, data: bytes | memoryview) -> None:
        """Send what was answered, and keep what is left. Called by the loop when everyone was read."""
        if self.fd < 0:
            return
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return
        if sent < len(data):
            self._unsent = memoryview(data)[sent:]
            self._host.burdens.unsent.hold(self, len(data) - sent, anew=sent > 0)
            self._watch(WRITE)
            return
        if self._unsent:
            self._unsent = b""
            self._host.burdens.unsent.forget(self)
        session = self._session
        if self._mask != READ or session.backlog or session.held or session.parked or session.closed or self._finishing:
            self._settle()

    def _go_on(self) -> None:
        """The client takes more: send what is left, then answer what waited for that."""
        self.active_ms = real_ms()
        data = self._unsent or self._session.proceed(self._host.clock.now_ms())
        if data:
            self.send_out(data)
        else:
            self._settle()

    def _released(self) -> None:
        """The session has something to send, or its parked request was woken."""
        if self.fd < 0:
            return
        self._host.clock.active()
        parked = self._session.parked
        if parked is not None and parked.wait.completion is not None and parked.wait.completion.woken:
            if self._deadline is not None:
                self._deadline.cancel()
            self._resume()
        elif not self._unsent:  # else it comes by `_go_on`
            self._go_on()

    def _settle(self) -> None:
        """Bring what is watched, and the parked request's timer, in line with the session."""
        session = self._session
        if self.fd < 0:
            return
        if self._unsent:
            self._watch(WRITE)
        elif session.closed is not None and not session.held:
            self.close()
        elif session.parked is not None:
            self._park(session.parked.wait.deadline_ms)
        elif session.waits or session.closed is not None:
            self._watch(0)  # until the log has what was appended: `_released`
        elif session.backlog:
            self._watch(WRITE)  # the next round is soon enough, and others get their turn
        elif self._finishing:
            self._watch(0)
        else:
            self._watch(READ)

    def _park(self, deadline_ms: int | None) -> None:
        if self._mask != READ:
            self._watch(0)
        clock = self._host.clock
        due_ms = clock.now_ms() if self._finishing else deadline_ms
        if self._deadline is None and due_ms is not None:
            self._deadline = clock.call_at(due_ms, self._resume, for_client=True)

    def _watch(self, mask: int) -> None:
        if mask != self._mask:
            self._mask = mask
            self._host.poller.modify(self.fd, mask)

    def _resume(self) -> None:
        self._deadline = None
        self.active_ms = real_ms()
        answers = self._session.resume(self._host.clock.now_ms())
        if answers:
            self._host.outgoing.append((self, answers))
            if len(answers) > LARGE_ANSWERS_BYTES:
                self._host.send_outgoing()
        else:
            self._settle()

    def finish(self) -> None:
        """Shutdown: answer what has been read, parked requests too, and read no more; then `close_if_delivered`."""
        if self._mask == READ and self._session.parked is None:
            self.on_ready(READ, self._host.clock.now_ms())
            self._host.send_outgoing()
        self._finishing = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._settle()

    def answer_no_more(self) -> None:
        """After `finish`: time is short, so the answers that are made already are the last ones."""
        self._session.backlog.clear()

    def close_if_delivered(self) -> None:
        """After `finish`: close once the client's side has all answers."""
        if self.fd >= 0 and self._mask == 0 and not self.parked and not undelivered_bytes(self._socket):
            self.close()

    def give_up(self, reason: str) -> None:
        """Close the socket now, and tell why."""
        self._session.give_up(reason)
        self.close()

    def close(self) -> None:
        """Close the socket now; unsent answers are lost."""
        if self.fd < 0:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._session.abandon()
        self._host.burdens.unfinished.forget(self)
        self._host.burdens.unsent.forget(self)
        self._host.remove(self.fd)
        self.fd = -1
        self._socket.close()
        self._on_closed(self)


def undelivered_bytes(sock: socket.socket) -> int:
    """How much of what was given to the kernel has not left it, as the other side takes no more; 0 if it can't tell."""
    if sys.platform != "linux":
        return 0
    from fcntl import ioctl

    try:
        return int.from_bytes(ioctl(sock, SIOCOUTQNSD, bytes(4)), sys.byteorder)
    except OSError:  # some sandboxes' kernels do not have it
        return 0
