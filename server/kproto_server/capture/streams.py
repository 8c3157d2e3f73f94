"""Put the TCP streams of a capture together: bytes in order, and how many are missing where packets were lost.

Theory of operation. A `Stream` is one direction of a connection. It takes segments in the order of the capture and
yields the new bytes in the order of their sequence numbers; a segment behind a gap waits. The gap is given up when the
receiver has acknowledged the bytes behind it (they arrived, but the capture does not have them), when too much waits,
or at the end of the connection. Then a `Missing` stands for it.

A capture may begin in the middle of a connection: its first segment is the beginning then. Sequence numbers have 32
bits and wrap around.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.capture.segments import ACK, FIN, RST, SYN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from kproto_server.capture.segments import Endpoint, Segment

    class Reader(Protocol):
        """Reads one connection of a capture."""

        def received(self, side: int, data: bytes, time_ns: int) -> None:
            """Take the bytes that a side sent; they begin with a segment."""

        def missing(self, side: int, count: int) -> None:
            """Take notice of bytes that a side sent, and that the capture does not have."""

        def closed(self, side: int) -> None:
            """End: this side ended the connection; -1: the capture does not show it."""

    class Readers(Protocol):
        """Makes the readers of connections."""

        def __call__(self, ends: tuple[Endpoint, Endpoint], opener: int) -> Reader:
            """Return the reader of a connection between two ends, one of which opened it; -1: not known."""


SEQUENCES = 1 << 32
HALF = 1 << 31
WAITING_MAX_BYTES = 1024 * 1024
"""Bytes of a stream that wait behind a gap: a receive window has less, mostly."""
WAITING_MAX_COUNT = 1000
ALL_WAITING_MAX_BYTES = 64 * 1024 * 1024
"""Bytes of all streams that wait."""
CONNECTIONS_MAX = 10_000
"""Connections that are followed at a time; the one that was silent for longest is forgotten."""
NOT_KNOWN = -1


class Missing(NamedTuple):
    """Bytes that the capture does not have."""

    byte_count: int


class Stream:
    """One direction of a connection."""

    __slots__ = ("_waiting", "next_sequence", "waiting_bytes")

    def __init__(self) -> None:
        self.next_sequence: int | None = None
        """None: no segment has shown it."""
        self._waiting: dict[int, tuple[bytes, int]] = {}
        """Sequence number -> payload, and the missing bytes behind it."""
        self.waiting_bytes: int = 0

    def takes_next(self, segment: Segment) -> bool:
        """Take a segment that follows on, as nearly all do, unless others wait or it has missing bytes; return whether
        it did. `add` would yield its payload."""
        if segment.sequence != self.next_sequence or self._waiting or segment.missing:
            return False
        self.next_sequence = (segment.sequence + len(segment.payload)) % SEQUENCES
        return True

    def add(self, sequence: int, payload: bytes, missing: int) -> Iterator[bytes | Missing]:
        """Take a segment; yield what is in order by now."""
        if self.next_sequence is None:
            self.next_sequence = sequence
        if _distance(self.next_sequence, sequence) > 0:
            waiting, size = self._waiting.get(sequence, (b"", 0))
            if len(payload) + missing > len(waiting) + size:
                self._waiting[sequence] = payload, missing
                self.waiting_bytes += len(payload) - len(waiting)
            if self.waiting_bytes > WAITING_MAX_BYTES or len(self._waiting) > WAITING_MAX_COUNT:
                yield from self.release()
            return
        yield from self._take(sequence, payload, missing)
        if self._waiting:
            yield from self._in_order()

    def is_behind(self, acknowledged: int) -> bool:
        """Return whether segments wait that the receiver has acknowledged."""
        return any(_distance(sequence, acknowledged) > 0 for sequence in self._waiting)

    def release(self) -> Iterator[bytes | Missing]:
        """Give up all gaps; yield what waited behind them."""
        while self._waiting:
            assert self.next_sequence is not None, "a segment has shown it"
            start = self.next_sequence
            first = min(self._waiting, key=lambda sequence: _distance(start, sequence))
            yield Missing(_distance(start, first))
            self.next_sequence = first
            yield from self._in_order()

    def _in_order(self) -> Iterator[bytes | Missing]:
        """Yield the waiting segments that follow on."""
        found = True
        while found:
            found = False
            for sequence in sorted(self._waiting, key=lambda sequence: _distance(self._next, sequence)):
                if _distance(self._next, sequence) > 0:
                    break
                payload, missing = self._waiting.pop(sequence)
                self.waiting_bytes -= len(payload)
                yield from self._take(sequence, payload, missing)
                found = True

    @property
    def _next(self) -> int:
        assert self.next_sequence is not None, "a segment has shown it"
        return self.next_sequence

    def _take(self, sequence: int, payload: bytes, missing: int) -> Iterator[bytes | Missing]:
        """Yield the new bytes of a segment that begins at the next sequence number or before it."""
        repeated = -_distance(self._next, sequence)
        if repeated >= len(payload) + missing:
            return  # nothing, a keep-alive, or sent again
        self.next_sequence = (sequence + len(payload) + missing) % SEQUENCES
        if repeated < len(payload):
            yield payload[repeated:] if repeated else payload
        if missing:
            yield Missing(missing - max(0, repeated - len(payload)))


def _distance(start: int, end: int) -> int:
    """Return how far a sequence number is ahead of another one; negative: it is behind."""
    distance = (end - start) % SEQUENCES
    return distance if distance < HALF else distance - SEQUENCES


class _Connection:
    __slots__ = ("beginning", "ended", "reader", "streams")

    def __init__(self, reader: Reader, beginning: int | None) -> None:
        self.reader = reader
        self.beginning = beginning
        """Sequence number of the SYN; None: the capture does not have it."""
        self.streams = (Stream(), Stream())
        self.ended: list[int] = []
        """The sides that have ended it, in order."""


class Connections:
    """All connections of one or more captures."""

    def __init__(self, new_reader: Readers) -> None:
        self._new_reader = new_reader
        self._connections: OrderedDict[tuple[Endpoint, Endpoint], _Connection] = OrderedDict()
        self._waiting_bytes = 0
        self._time_ns = 0
        self.lost_count: int = 0
        """Gaps that were given up, and segments captured in part."""
        self.lost_bytes: int = 0

    def add(self, segment: Segment, time_ns: int) -> None:
        """Take the next segment of the capture."""
        self._time_ns = time_ns
        source, destination, flags = segment.source, segment.destination, segment.flags
        ends, side = ((source, destination), 0) if source < destination else ((destination, source), 1)
        connection = self._connections.get(ends)
        if flags & SYN:
            connection = self._opened(ends, connection, side, segment)
        elif connection is None:
            if not segment.payload:
                return  # the last acknowledgments of a connection, or one that is silent
            connection = self._open(ends, NOT_KNOWN, None)
        else:
            self._connections.move_to_end(ends)
        if flags & ACK:
            other = connection.streams[1 - side]
            if other.waiting_bytes and other.is_behind(segment.acknowledged):
                self._hand_on(connection, 1 - side, other.release)
        if segment.payload or segment.missing:
            stream = connection.streams[side]
            if stream.takes_next(segment):
                connection.reader.received(side, segment.payload, time_ns)
            else:
                self._hand_on(connection, side, lambda: stream.add(segment.sequence, segment.payload, segment.missing))
            if self._waiting_bytes > ALL_WAITING_MAX_BYTES:
                for each in self._connections.values():
                    self._release(each)
        if flags & (FIN | RST):
            if side not in connection.ended:
                connection.ended.append(side)
            if flags & RST or len(connection.ended) == len(connection.streams):
                self._close(ends, connection.ended[0])

    def end(self) -> None:
        """End all connections, as the captures do."""
        while self._connections:
            self._close(next(iter(self._connections)), NOT_KNOWN)

    def _opened(
        self, ends: tuple[Endpoint, Endpoint], connection: _Connection | None, side: int, segment: Segment
    ) -> _Connection:
        """Return the connection of a SYN: a new one, unless it is the response or was sent again."""
        is_first = not segment.flags & ACK
        if connection is None or (is_first and connection.beginning != segment.sequence):
            opener = side if is_first else 1 - side
            connection = self._open(ends, opener, segment.sequence if is_first else None)
        stream = connection.streams[side]
        if stream.next_sequence is None:
            stream.next_sequence = (segment.sequence + 1) % SEQUENCES
        return connection

    def _open(self, ends: tuple[Endpoint, Endpoint], opener: int, beginning: int | None) -> _Connection:
        if ends in self._connections:
            self._close(ends, NOT_KNOWN)
        if len(self._connections) >= CONNECTIONS_MAX:
            self._close(next(iter(self._connections)), NOT_KNOWN)
        connection = self._connections[ends] = _Connection(self._new_reader(ends, opener), beginning)
        return connection

    def _close(self, ends: tuple[Endpoint, Endpoint], side: int) -> None:
        connection = self._connections.pop(ends)
        self._release(connection)
        connection.reader.closed(side)

    def _release(self, connection: _Connection) -> None:
        for side, stream in enumerate(connection.streams):
            self._hand_on(connection, side, stream.release)

    def _hand_on(self, connection: _Connection, side: int, take: Callable[[], Iterator[bytes | Missing]]) -> None:
        """Give the reader what is in order by now."""
        stream = connection.streams[side]
        before = stream.waiting_bytes
        for piece in take():
            if isinstance(piece, Missing):
                self.lost_count += 1
                self.lost_bytes += piece.byte_count
                connection.reader.missing(side, piece.byte_count)
            else:
                connection.reader.received(side, piece, self._time_ns)
        self._waiting_bytes += stream.waiting_bytes - before
