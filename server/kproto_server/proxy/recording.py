"""Capture what a proxy relays; a file that cannot be written any more ends the capture, not the proxy."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kproto_server.capture.writer import CaptureFile, endpoint

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from kproto_server.capture.writer import CapturedConnection
    from kproto_server.proxy.rewriting import Address

logger = logging.getLogger("kproto")


class Recording:
    """The capture of one proxy.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: CaptureFile | None = CaptureFile(path)
        self.has_failed: bool = False
        """Whether the file could not be written any more."""

    def connection(self, client: Address, broker: socket.socket) -> RecordedConnection | None:
        """Return the capture of a new connection: the client's own address, and the broker's; None: it was reset.

        ``client``: its address when it was accepted, which its socket does not have any more after a reset.
        """
        try:
            return RecordedConnection(self, client, broker)
        except OSError:  # a broker that has reset has no address any more
            return None

    def write(self, action: Callable[[CaptureFile], None]) -> None:
        """Write a part of the capture, unless it has failed."""
        if self._file is None:
            return
        try:
            action(self._file)
        except OSError as error:
            self._fail(error)

    def flush(self) -> None:
        """Let readers see what was captured so far."""
        self.write(CaptureFile.flush)

    def close(self) -> None:
        """End the file."""
        self.write(CaptureFile.close)
        self._file = None

    def _fail(self, error: OSError) -> None:
        logger.error("--capture: can't write %r any more: %s", self._path, error.strerror)
        self.has_failed = True
        self._file = None


class RecordedConnection:
    """The capture of one connection."""

    def __init__(self, recording: Recording, client: Address, broker: socket.socket) -> None:
        self._recording = recording
        self._ends = [endpoint(*address) for address in (client, broker.getpeername()[:2])]
        self._connection: CapturedConnection | None = None
        self._recording.write(self._begin)

    def sent(self, data: bytes) -> None:
        """Write what the client sent."""
        self._write(lambda connection: connection.sent(data))

    def received(self, data: bytes) -> None:
        """Write what the broker sent."""
        self._write(lambda connection: connection.received(data))

    def closed(self, *, by_broker: bool) -> None:
        """Write the end."""
        self._write(lambda connection: connection.closed(by_broker=by_broker))

    def _begin(self, file: CaptureFile) -> None:
        self._connection = file.connection(*self._ends)

    def _write(self, action: Callable[[CapturedConnection], None]) -> None:
        connection = self._connection
        if connection is not None:
            self._recording.write(lambda _: action(connection))
