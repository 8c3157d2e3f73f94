"""A client without a library: a blocking socket that sends requests and splits its input into responses."""

from __future__ import annotations

import itertools
import socket
import struct
from types import TracebackType
from typing import Any, Self

from kproto.framing import FrameReader
from kproto.headers import read_response, request_frame
from kproto.message import Request
from tests.waiting import LIMIT_S


class RawClient:
    """One connection. Every wait ends after `LIMIT_S` with TimeoutError."""

    def __init__(self, address: str, client_id: str | None = "raw", receive_buffer_bytes: int | None = None) -> None:
        """``address`` is HOST:PORT, the first of several separated by commas."""
        host, _, port = address.split(",")[0].rpartition(":")
        self.client_id = client_id
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if receive_buffer_bytes is not None:  # takes effect only before the connection exists
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(LIMIT_S)
        self.socket.connect((host.strip("[]"), int(port)))
        self._reader = FrameReader()
        self._frames: list[bytes] = []
        self._ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, *requests: tuple[Request, int]) -> list[int]:
        """Send requests, each with its version, in one piece; return their correlation ids."""
        ids = [next(self._ids) for _ in requests]
        self.socket.sendall(b"".join(self.frame(r, v, i) for (r, v), i in zip(requests, ids, strict=True)))
        return ids

    def frame(self, request: Request, version: int, correlation_id: int) -> bytes:
        return request_frame(request, version, correlation_id=correlation_id, client_id=self.client_id)

    def ask(self, request: Request, version: int) -> Any:
        """Send one request; return its response."""
        (correlation_id,) = self.send((request, version))
        response_id, response = read_response(self.read_frame(), type(request), version)
        assert response_id == correlation_id
        return response

    def read_frame(self) -> bytes:
        """Return the next response without its size.

        Raises:
            ConnectionError: the connection ended before the response was complete.
        """
        while not self._frames:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the broker has closed the connection")
            self._reader.feed(data)
            self._frames = list(self._reader.frames())
        return self._frames.pop(0)

    def read_ids(self, count: int) -> list[int]:
        """Return the correlation ids of the next ``count`` responses."""
        return [int.from_bytes(self.read_frame()[:4], "big") for _ in range(count)]

    def read_ids_to_the_end(self) -> list[int]:
        """Return the correlation ids of all responses until the connection ends after a whole response."""
        found = []
        while True:
            try:
                found += self.read_ids(1)
            except ConnectionError:
                assert self._reader.buffered == 0, f"{self._reader.buffered} bytes of an incomplete response"
                return found

    def is_open(self) -> bool:
        """Return whether the connection is open. No response may be on its way."""
        self.socket.setblocking(False)
        try:
            assert self.socket.recv(1) == b"", "an unexpected response"
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        finally:
            self.socket.settimeout(LIMIT_S)
        return False

    def wait_closed(self) -> None:
        """Wait until the broker closes the connection, without a further response."""
        try:
            assert self.socket.recv(1) == b"", "an unexpected response"
        except ConnectionResetError:
            return

    def reset(self) -> None:
        """Close the connection with RST, as the crash of a client's machine does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
