"""From a stream of bytes to frames, without sockets (BA-1).

Wire:
    int32 size, not counting itself; then that many bytes. Requests and responses have the same frame.

Theory of operation. A read of a socket may end anywhere. Usually it ends where a frame ends: then the frames are slices
of the read, and nothing is kept. Otherwise the reads are kept as they are until they have the whole frame, and are then
joined: a frame of any size is copied once, which is what a request of 100 KB costs most here. Small reads are kept
together, because each would take an object of its own. Memory grows with the received bytes, never with an announced
size. A size that is negative or above the limit is refused as soon as its four bytes have arrived. A frame of size 0 is
whole; reading its header fails.
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

PIECE_SIZE_MIN = 4096
"""Bytes of a kept read to which the next one is not appended. An object takes about 50 bytes, and a pointer to it 8."""

_SIZE = struct.Struct(">I")
_read_size = _SIZE.unpack_from


class FrameReader:
    """Bytes in, frames out. After a refused size, the reader only raises: the stream has no more frames."""

    __slots__ = ("_failure", "_pieces", "_wanted", "_whole", "buffered", "limit")

    def __init__(self, limit: int = FRAME_SIZE_MAX) -> None:
        assert 0 <= limit <= SIZE_MAX, "the size of a frame is an int32"
        self.limit: int = limit
        self._whole: list[bytes] = []
        """Frames that `frames` returns next."""
        self._pieces: list[bytes] = []
        """The reads that have the beginning of a frame."""
        self._wanted: int = 0
        """Bytes of that frame and its size; 0: the size has not arrived."""
        self._failure: FrameTooLarge | None = None
        self.buffered: int = 0
        """Bytes of a frame that is not whole; more than 0 at the end of a stream means that the stream is truncated."""

    def feed(self, data: bytes) -> None:
        """Add the bytes of one read; after a refused size they are ignored."""
        if self._failure is not None:
            return
        pieces = self._pieces
        if not pieces:
            self._cut(data)
        elif not self._wanted:
            self._cut(pieces[0] + data)
        elif (missing := self._wanted - self.buffered) <= len(data):
            first = memoryview(pieces[0])[_SIZE.size :]
            self._whole.append(b"".join((first, *pieces[1:], memoryview(data)[:missing])))
            self._cut(data[missing:])
        else:
            self.buffered += len(data)
            if len(pieces[-1]) < PIECE_SIZE_MIN:
                pieces[-1] += data
            else:
                pieces.append(data)

    def frames(self) -> Iterator[bytes]:
        """Remove and return all whole frames, without their sizes.

        Raises:
            FrameTooLarge: while iterating, after the frames before the refused one.
        """
        whole, self._whole = self._whole, []
        return iter(whole) if self._failure is None else _then_raise(whole, self._failure)

    def _cut(self, data: bytes) -> None:
        """Cut frames from data that begins with one, and keep the rest."""
        limit, total = self.limit, len(data)
        position = wanted = 0
        while position + 4 <= total:
            (size,) = _read_size(data, position)
            end = position + 4 + size
            if size > limit:
                self._failure = FrameTooLarge(size - (1 << 32) if size > SIZE_MAX else size, limit)
                position = total
            elif end > total:
                wanted = 4 + size
                break
            else:
                self._whole.append(data[position + 4 : end])
                position = end
        self._wanted = wanted
        self._pieces = [data[position:]] if position < total else []
        self.buffered = total - position


def _then_raise(frames: list[bytes], failure: FrameTooLarge) -> Iterator[bytes]:
    yield from frames
    raise failure
