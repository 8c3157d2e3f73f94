"""A connection's socket: read what is there, hand it to the session, send what it answers.

Backpressure is by not reading: while answers are unsent, or a request is parked, the socket is not watched for
reading, so a client that does not read its answers, or pipelines behind a long poll, fills its own buffers, not ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.shell.host import real_ms
from kproto_server.shell.poller import READ, WRITE

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from kproto_server.clock import Timer
    from kproto_server.dispatch import Session
    from kproto_server.shell.host import Host

READ_SIZE_BYTES = 65536
"""Octets taken from a socket at once: bounds what one connection can do in one round of the loop."""


class Connection:
    """One client's socket; owned by the listener that accepted it, which `on_closed` tells."""

    __slots__ = ("_deadline", "_host", "_mask", "_on_closed", "_session", "_socket", "_unsent", "active_ms", "fd")

    def __init__(
        self, host: Host, sock: socket.socket, session: Session, on_closed: Callable[[Connection], None]
    ) -> None:
        self._host = host
        self._socket = sock
        self._session = session
        self._on_closed = on_closed
        self._unsent = b""
        self._deadline: Timer | None = None
        self._mask = READ
        self.fd = sock.fileno()
        self.active_ms = real_ms()
        """Real time of the last request, for connections.max.idle.ms (BA-10)."""
        host.add(self.fd, self, READ)

    @property
    def parked(self) -> bool:
        """Whether a request waits for its answer; such a connection is not idle (BA-10)."""
        return self._session.parked is not None

    def on_ready(self, mask: int) -> None:
        """Called by the loop when the socket is ready."""
        if mask & WRITE and self._unsent:
            self._send(self._unsent)
        elif mask & ~WRITE:
            self._read()

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ_SIZE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        clock = self._host.clock
        clock.active()
        self.active_ms = real_ms()
        answers = self._session.receive(data, clock.now_ms())
        if answers:
            self._send(answers)
        self._settle()

    def _send(self, data: bytes) -> None:
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return
        self._unsent = data[sent:] if sent < len(data) else b""
        if self._unsent or self._mask != READ:
            self._settle()

    def _settle(self) -> None:
        """Bring what is watched, and the parked request's timer, in line with the session."""
        session = self._session
        if self._unsent:
            self._watch(WRITE)
        elif session.closed is not None:
            self.close()
        elif session.parked is not None:
            self._watch(0)
            if self._deadline is None:
                due = session.parked.wait.deadline_ms
                self._deadline = self._host.clock.call_at(due, self._resume, for_client=True)
        else:
            self._watch(READ)

    def _watch(self, mask: int) -> None:
        if mask != self._mask and self.fd >= 0:
            self._mask = mask
            self._host.poller.modify(self.fd, mask)

    def _resume(self) -> None:
        self._deadline = None
        answers = self._session.resume(self._host.clock.now_ms())
        if answers:
            self._send(answers)
        self._settle()

    def finish(self) -> None:
        """Shutdown: answer what has been read, a parked request too, and close once it is sent."""
        if self.fd < 0:
            return
        if self._mask == READ:
            self._read()
        if self.fd >= 0 and self._deadline is not None:
            self._deadline.cancel()
            self._resume()
        if self.fd >= 0 and self._session.closed is None:
            self._session.closed = "the broker shuts down"
            self._settle()

    def close(self) -> None:
        """Close the socket now; unsent answers are lost."""
        if self.fd < 0:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._host.remove(self.fd)
        self.fd = -1
        self._socket.close()
        self._on_closed(self)
