"""Cut one direction of a connection into frames, and pass large ones in parts.

Theory of operation. `Cutter.feed` takes the bytes of one read and returns the pieces to send on. A frame is collected
until it is whole, or until `Cutter.collects` says that its beginning is enough: then `begin` sees the beginning, and
the rest passes as it arrives. So the memory of a direction is one frame that has to be read, and one read.

A frame here includes the 4 bytes of its size. After a negative size the proxy relays all further bytes unread, and the
broker or the client closes the connection because of them.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from kproto.framing import FRAME_SIZE_MAX

SIZE_BYTES = 4
HEADER_BYTES = SIZE_BYTES + 8
"""Bytes that `Cutter.begin` needs of a frame with a gap: API key, version and correlation id of a request."""
COLLECTED_MAX = SIZE_BYTES + FRAME_SIZE_MAX
"""Bytes of the largest frame that is collected: Kafka's default of ``socket.request.max.bytes``. Larger ones pass
unread."""
ELEMENTS_MAX = 1_000_000
"""Elements of a request that is decoded, which have a byte each at least: brokers of Kafka have no limit, and serve
what clients of a large cluster send; so many take a second."""
PENDING_MAX = 10_000
"""Requests of a connection that wait for their response. Further ones stay in a client's socket; in a capture, which
may have one direction only, the oldest ones are taken as lost."""

T = TypeVar("T")


class Cutter(Generic[T]):
    """One direction of a connection; a subclass reads the frames, and may return a `T` in the place of one."""

    __slots__ = ("_collected", "_is_lost", "_passing")

    def __init__(self) -> None:
        self._collected = bytearray()
        self._passing = 0
        """Bytes of the present frame that pass as they arrive."""
        self._is_lost = False
        """Whether the stream has no frames any more."""

    @property
    def is_passing(self) -> bool:
        """Whether a frame passes, of which a part has not arrived."""
        return self._passing > 0

    def feed(self, data: bytes) -> list[bytes | T]:
        """Take the bytes of one read; return what to send on, in order."""
        collected = self._collected
        if not collected and not self._passing and not self._is_lost:
            if len(data) > SIZE_BYTES and int.from_bytes(data[:4], "big", signed=True) == len(data) - SIZE_BYTES:
                return [self.whole(data)]  # nearly every read of small frames
        elif self._is_lost:
            return [data]
        pieces: list[bytes | T] = []
        if self._passing:
            passed = data[: self._passing]
            self._passing -= len(passed)
            pieces.append(passed)
            data = data[len(passed) :]
        collected += data
        while len(collected) >= SIZE_BYTES:
            size = int.from_bytes(collected[:SIZE_BYTES], "big", signed=True)
            end = SIZE_BYTES + size
            if size < 0:
                self._is_lost = True
                pieces.append(bytes(collected))
                collected.clear()
            elif len(collected) >= end:
                with memoryview(collected) as view:
                    frame = bytes(view[:end])
                del collected[:end]
                pieces.append(self.whole(frame))
            else:
                if len(collected) >= self.collects(collected, end):
                    beginning = bytes(collected)
                    self._passing = end - len(beginning)
                    collected.clear()
                    self.begin(beginning)
                    pieces.append(beginning)
                break
        return pieces

    def skip(self, count: int) -> bool:
        """Pass over bytes that are not known; return False if the next frame cannot be found any more.

        Bytes of one frame, behind its beginning, may be missing. After False, `feed` takes bytes from the beginning of
        a frame on.
        """
        collected = self._collected
        if self._passing >= count:
            self._passing -= count
            return True
        if len(collected) >= HEADER_BYTES:
            left = SIZE_BYTES + int.from_bytes(collected[:SIZE_BYTES], "big", signed=True) - len(collected) - count
            if left >= 0:
                beginning = bytes(collected)
                collected.clear()
                self._passing = left
                self.begin(beginning)
                return True
        collected.clear()
        self._passing = 0
        return False

    def collects(self, beginning: bytearray, end: int) -> int:
        """Return the bytes of a frame of ``end`` bytes after which its rest passes, of which ``beginning`` is known."""
        raise NotImplementedError

    def begin(self, beginning: bytes) -> None:
        """Read the beginning of a frame whose rest passes."""
        raise NotImplementedError

    def whole(self, frame: bytes) -> bytes | T:
        """Read a frame; return what to send for it."""
        raise NotImplementedError
