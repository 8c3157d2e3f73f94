"""From a stream of bytes to frames, without sockets (BA-1).

Wire:
    int32 size, not counting itself; then that many bytes. Requests and responses have the same frame.

Theory of operation. A read of a socket may end anywhere. Usually it ends where a frame ends: then the frames are slices
of the read, and nothing is kept. Otherwise the rest is kept as it is (`_head`), and the next read often completes its
frame: then the frame is copied once, which is what a request of 100 KB costs most here. Otherwise both are kept in one
growing buffer until its first frame is whole, so that a large frame costs one append for each read, however small the
reads are. Memory grows with the received bytes, never with an announced size. A size that is negative or above the
limit is refused as soon as its four bytes have arrived. A frame of size 0 is whole; reading its header fails.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from kproto.errors import FrameTooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

FRAME_SIZE_MAX = 104857600
"""Bytes of the largest frame that is accepted: Kafka's default of ``socket.request.max.bytes``."""

SIZE_MAX = 0x7FFFFFFF
"""The largest size that the int32 before a frame can express."""

_SIZE = struct.Struct(">I")
_read_size = _SIZE.unpack_from


class FrameReader:
    """Bytes in, frames out. After a refused size, the reader only raises: the stream has no more frames."""

    __slots__ = ("_data", "_failure", "_head", "_pending", "buffered", "limit")

    def __init__(self, limit: int = FRAME_SIZE_MAX) -> None:
        assert 0 <= limit <= SIZE_MAX, "the size of a frame is an int32"
        self.limit: int = limit
        self._head = b""
        """The rest of a read, before `_data`."""
        self._data = b""
        self._pending = bytearray()
        """The rest of several reads; then there is no `_head`."""
        self._failure: FrameTooLarge | None = None
        self.buffered: int = 0
        """Bytes of a frame that is not whole; more than 0 at the end of a stream means that the stream is truncated."""

    def feed(self, data: bytes) -> None:
        """Add the bytes of one read; after a refused size they are ignored."""
        if self._failure is not None:
            return
        if not self._pending and not self._data:
            self._data = data
        else:
            self._keep()
            self._pending += data
        self.buffered += len(data)

    def _keep(self) -> None:
        """Move all bytes into the buffer."""
        self._pending += self._head
        self._pending += self._data
        self._head = self._data = b""

    def frames(self) -> Iterator[bytes]:
        """Remove and return all whole frames, without their sizes.

        Raises:
            FrameTooLarge: while iterating, after the frames before the refused one.
        """
        whole: list[bytes] = []
        if self._head and self._data and not self._complete(whole):
            self._keep()
        if self._pending:
            self._join(whole)
        if self._data:
            self._cut(whole)
        self.buffered = len(self._head) + len(self._pending) + len(self._data)
        return iter(whole) if self._failure is None else _then_raise(whole, self._failure)

    def _complete(self, whole: list[bytes]) -> bool:
        """If the data completes the head's frame, take it and leave the bytes after it."""
        head, data = self._head, self._data
        if len(head) < _SIZE.size:
            return False
        (size,) = _read_size(head)
        missing = _SIZE.size + size - len(head)
        if size > self.limit or missing > len(data):
            return False
        whole.append(b"".join((memoryview(head)[_SIZE.size :], memoryview(data)[:missing])))
        self._head, self._data = b"", data[missing:]
        return True

    def _join(self, whole: list[bytes]) -> None:
        """If the buffer's first frame is whole or refused, take it and make the bytes after it the data to cut."""
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
        """Cut frames from the data; the rest goes into the buffer."""
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
            self._head = data[position:]


def _then_raise(frames: list[bytes], failure: FrameTooLarge) -> Iterator[bytes]:
    yield from frames
    raise failure
