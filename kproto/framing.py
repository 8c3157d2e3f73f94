"""From a stream of bytes to frames: a machine without sockets (BA-1).

Wire:
    int32 size, not counting itself; then that many octets. Answers have the same frame.

Theory of operation. A read of a socket ends anywhere. Mostly it ends where a frame does: then its frames are cut out
of the read itself and nothing is kept. Otherwise the rest is kept in one growing buffer until the first frame in it is
whole, so that a large frame costs one append a read, however small the reads are; memory grows with what came, never
with what was announced. A size that is negative or above the limit is refused as soon as its four octets are here.
Size 0 is a whole frame; it has no header and its reader refuses it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from kproto.errors import FrameTooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

FRAME_SIZE_MAX = 104857600
"""Bytes of the largest frame: Kafka's default of ``socket.request.max.bytes``. A frame of just this size is read."""

SIZE_MAX = 0x7FFFFFFF
"""The largest size that the int32 before a frame can tell."""

_SIZE = struct.Struct(">I")
_read_size = _SIZE.unpack_from


class FrameReader:
    """Bytes in, frames out. After a refused size it only refuses: the stream has no more frames."""

    __slots__ = ("_data", "_failure", "_pending", "buffered", "limit")

    def __init__(self, limit: int = FRAME_SIZE_MAX) -> None:
        assert 0 <= limit <= SIZE_MAX, "the size of a frame is an int32"
        self.limit: int = limit
        self._data = b""
        self._pending = bytearray()
        self._failure: FrameTooLarge | None = None
        self.buffered: int = 0
        """How many bytes wait for the rest of their frame; not 0 at the end of a stream means that it was cut."""

    def feed(self, data: bytes) -> None:
        """Take what one read gave; empty is nothing, and so is what follows a refused size."""
        if self._failure is not None:
            return
        if not self._pending and not self._data:
            self._data = data
        else:
            self._pending += self._data
            self._pending += data
            self._data = b""
        self.buffered += len(data)

    def frames(self) -> Iterator[bytes]:
        """Return all frames that are whole, without their sizes; they are gone from here then.

        Raises:
            FrameTooLarge: while iterating, after the frames that stand before the refused one.
        """
        whole: list[bytes] = []
        if self._pending:
            self._join(whole)
        if self._data:
            self._cut(whole)
        self.buffered = len(self._pending) + len(self._data)
        return iter(whole) if self._failure is None else _then_raise(whole, self._failure)

    def _join(self, whole: list[bytes]) -> None:
        """Once the buffer's first frame is whole or refused, take it and make what follows the data to cut."""
        pending = self._pending
        if len(pending) < _SIZE.size:
            return
        (size,) = _read_size(pending)
        end = _SIZE.size + size
        if size > self.limit:
            self._data = bytes(pending[: _SIZE.size])
        elif len(pending) < end:
            return
        else:
            with memoryview(pending) as view:
                whole.append(bytes(view[_SIZE.size : end]))
                self._data = bytes(view[end:])
        self._pending = bytearray()

    def _cut(self, whole: list[bytes]) -> None:
        """Cut frames from the data; what remains goes into the buffer."""
        data, limit = self._data, self.limit
        total = len(data)
        position = 0
        while position + 4 <= total:
            (size,) = _read_size(data, position)
            end = position + 4 + size
            if size > limit:
                self._failure = FrameTooLarge(size - (1 << 32) if size > SIZE_MAX else size, limit)
                position = total
            elif end > total:
                break
            else:
                whole.append(data[position + 4 : end])
                position = end
        self._data = b""
        if position < total:
            self._pending += data[position:]


def _then_raise(frames: list[bytes], failure: FrameTooLarge) -> Iterator[bytes]:
    yield from frames
    raise failure
