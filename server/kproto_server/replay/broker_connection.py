"""A connection to the broker of a replay."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from kproto.errors import FrameTooLarge
from kproto.framing import FrameReader

READ_BYTES = 1 << 16


class BrokerConnection:
    """Sends requests, and returns responses by their correlation ids.

    Raises:
        OSError: the broker cannot be reached; each method, too: the connection is closed, or too slow.
    """

    def __init__(self, address: tuple[str, int], timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._socket = socket.create_connection(address, timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = FrameReader()
        self._frames: list[bytes] = []

    def send(self, frame: bytes) -> None:
        """Send a request with its size."""
        self._socket.settimeout(self._timeout_s)
        self._socket.sendall(frame)

    def receive(self, correlation_id: int | None) -> bytes:
        """Return the response with this correlation id; without one, the next frame."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            for number, frame in enumerate(self._frames):
                if correlation_id is None or int.from_bytes(frame[:4], "big", signed=True) == correlation_id:
                    return self._frames.pop(number)
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            self._socket.settimeout(left_s)
            data = self._socket.recv(READ_BYTES)
            if not data:
                raise ConnectionError("the broker has closed the connection")
            self._reader.feed(data)
            try:
                self._frames += self._reader.frames()
            except FrameTooLarge as error:
                raise ConnectionError(str(error)) from None

    def wait_readable(self, limit_s: float) -> None:
        """Return when the broker has sent something, or after the limit."""
        if not self._frames:
            self._socket.settimeout(limit_s)
            with suppress(OSError):  # it has sent nothing, or the next read fails
                self._socket.recv(1, socket.MSG_PEEK)

    def close(self) -> None:
        self._socket.close()

    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Return the addresses of this side and of the broker."""
        return self._socket.getsockname()[:2], self._socket.getpeername()[:2]
