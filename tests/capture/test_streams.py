"""Streams are put together from segments in any order; lost bytes are reported, and none are invented.

Method. Hypothesis cuts a stream into segments, repeats, reorders and drops some, and begins anywhere in the 32 bits of
sequence numbers.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kproto_server.capture import streams
from kproto_server.capture.segments import ACK, FIN, RST, SYN, Endpoint, Segment
from kproto_server.capture.streams import Connections, Missing, Stream
from tests.capture.packets import BROKER, CLIENT

DATA = bytes(range(200))
SEQUENCES = 1 << 32


class Reader:
    """Keeps what it reads: bytes, and a question mark for each missing one."""

    def __init__(self, opener: int) -> None:
        self.opener = opener
        self.sides = [b"", b""]
        self.ended: int | None = None

    def received(self, side: int, data: bytes, time_ns: int) -> None:
        self.sides[side] += data

    def missing(self, side: int, count: int) -> None:
        self.sides[side] += b"?" * count

    def closed(self, side: int) -> None:
        self.ended = side


class Capture:
    """Segments of one pair of ends; client is side 1, because its address is the larger one."""

    def __init__(self) -> None:
        self.readers: list[Reader] = []
        self.connections = Connections(self._reader)

    def _reader(self, ends: tuple[Endpoint, Endpoint], opener: int) -> Reader:
        self.readers.append(Reader(opener))
        return self.readers[-1]

    def client(self, sequence: int, payload: bytes = b"", flags: int = ACK, ack: int = 0, missing: int = 0) -> None:
        self.connections.add(Segment(CLIENT, BROKER, sequence, ack, flags, payload, missing), 0)

    def broker(self, sequence: int, payload: bytes = b"", flags: int = ACK, ack: int = 0) -> None:
        self.connections.add(Segment(BROKER, CLIENT, sequence, ack, flags, payload, 0), 0)


@st.composite
def cut(draw: st.DrawFn) -> list[tuple[int, bytes]]:
    """Return position and bytes of segments that have all of DATA, some twice or overlapping, in any order."""
    ends = sorted(draw(st.sets(st.integers(1, len(DATA) - 1), max_size=12)) | {len(DATA)})
    pieces = [(start, DATA[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    spans = st.tuples(st.integers(0, len(DATA) - 1), st.integers(1, 60))
    again = [(start, DATA[start : start + size]) for start, size in draw(st.lists(spans, max_size=6))]
    return draw(st.permutations(pieces + again))


@given(cut(), st.integers(0, SEQUENCES - 1))
def test_segments_in_any_order_are_the_stream(segments: list[tuple[int, bytes]], start: int) -> None:
    stream = Stream()
    stream.next_sequence = start
    pieces = [piece for at, data in segments for piece in stream.add((start + at) % SEQUENCES, data, 0)]
    assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == DATA
    assert not [piece for piece in pieces if isinstance(piece, Missing)]
    assert (stream.waiting_bytes, list(stream.release())) == (0, [])


@given(cut(), st.sets(st.integers(0, 18)), st.integers(0, SEQUENCES - 1))
def test_lost_segments_are_missing_and_the_others_in_place(
    segments: list[tuple[int, bytes]], lost: set[int], start: int
) -> None:
    arrived = [each for number, each in enumerate(segments) if number not in lost]
    stream = Stream()
    stream.next_sequence = start
    pieces = [piece for at, data in arrived for piece in stream.add((start + at) % SEQUENCES, data, 0)]
    pieces += stream.release()
    known = {position for at, data in arrived for position in range(at, at + len(data))}
    seen = b"".join(piece if isinstance(piece, bytes) else b"\xff" * piece.byte_count for piece in pieces)
    assert len(seen) == max(known, default=-1) + 1
    assert all(byte == (DATA[at] if at in known else 0xFF) for at, byte in enumerate(seen))
    assert stream.waiting_bytes == 0


def test_a_gap_that_the_receiver_has_acknowledged_is_given_up() -> None:
    capture = Capture()
    capture.client(100, flags=SYN)
    capture.broker(500, flags=SYN | ACK, ack=101)
    capture.client(101, b"one")
    capture.client(110, b"three")
    (reader,) = capture.readers
    assert (reader.opener, reader.sides[1]) == (1, b"one")
    capture.broker(501, b"response", ack=104)
    assert reader.sides == [b"response", b"one"]
    capture.broker(509, ack=115)
    assert reader.sides[1] == b"one??????three"
    assert (capture.connections.lost_count, capture.connections.lost_bytes) == (1, 6)


def test_a_gap_is_given_up_at_the_end_and_with_it_the_connection() -> None:
    capture = Capture()
    capture.client(100, flags=SYN)
    capture.client(105, b"late")
    capture.client(109, flags=FIN | ACK)
    (reader,) = capture.readers
    assert reader.sides[1] == b""
    capture.broker(500, flags=FIN | ACK)
    assert (reader.sides[1], reader.ended) == (b"????late", 1)
    capture.client(110, b"another connection")
    assert len(capture.readers) == 2


def test_a_port_that_is_used_again_is_another_connection() -> None:
    capture = Capture()
    for sequence, payload in ((100, b"first"), (7000, b"second")):
        capture.client(sequence, flags=SYN)
        capture.client(sequence, flags=SYN)  # sent again
        capture.client(sequence + 1, payload)
    assert [reader.sides[1] for reader in capture.readers] == [b"first", b"second"]
    capture.broker(1, flags=RST)
    assert [reader.ended for reader in capture.readers] == [-1, 0]


def test_a_capture_may_begin_in_the_middle() -> None:
    capture = Capture()
    capture.broker(77, flags=FIN | ACK)  # an end alone is no connection
    assert not capture.readers
    capture.client(SEQUENCES - 2, b"wraps")
    capture.client(SEQUENCES - 3, b"?")  # a keep-alive
    capture.client(3, b"around")
    (reader,) = capture.readers
    assert (reader.opener, reader.sides[1]) == (-1, b"wrapsaround")


def test_bytes_that_were_not_captured_are_missing() -> None:
    capture = Capture()
    capture.client(0, b"head", missing=6)
    capture.client(10, b"next")
    assert capture.readers[0].sides[1] == b"head??????next"
    assert capture.connections.lost_bytes == 6


def test_what_waits_is_limited() -> None:
    capture = Capture()
    capture.client(0, flags=SYN)
    piece = bytes(streams.WAITING_MAX_BYTES // 4)
    for number in range(5):
        capture.client(100 + number * len(piece), piece)
    assert len(capture.readers[0].sides[1]) == 99 + 5 * len(piece)
    assert capture.connections.lost_bytes == 99


def test_connections_are_limited() -> None:
    capture = Capture()
    for number in range(streams.CONNECTIONS_MAX + 1):
        end = (b"\x0a\1" + number.to_bytes(2, "big"), 1)
        capture.connections.add(Segment(end, BROKER, 0, 0, SYN, b"", 0), 0)
    assert [number for number, reader in enumerate(capture.readers) if reader.ended is not None] == [0]
    capture.connections.end()
    assert {reader.ended for reader in capture.readers} == {-1}
