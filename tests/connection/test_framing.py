"""FrameReader returns the same frames for any division of the stream, and refuses a size before it allocates (BA-1)."""

import itertools
import time
import tracemalloc
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import FrameTooLarge
from kproto.framing import FRAME_SIZE_MAX, PIECE_SIZE_MIN, FrameReader


def framed(frames: Iterable[bytes]) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def read_in(
    pieces: Iterable[bytes], reader: FrameReader | None = None, *, found: list[bytes] | None = None
) -> list[bytes]:
    """Feed the pieces one by one; append each frame to ``found`` as soon as it is whole, and return ``found``."""
    reader = FrameReader() if reader is None else reader
    found = [] if found is None else found
    for piece in pieces:
        reader.feed(piece)
        for frame in reader.frames():
            found.append(frame)  # extend would lose the frames before a refused size
    return found


def single_bytes(stream: bytes) -> Iterator[bytes]:
    return (stream[at : at + 1] for at in range(len(stream)))


@st.composite
def cut_streams(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """Frames, and their stream in pieces."""
    frames = draw(st.lists(st.binary(max_size=300), max_size=8))
    stream = framed(frames)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    edges = [0, *cuts, len(stream)]
    return frames, [stream[a:b] for a, b in itertools.pairwise(edges)]


@given(cut_streams())
def test_frames_do_not_depend_on_the_division_of_the_stream(example: tuple[list[bytes], list[bytes]]) -> None:
    frames, pieces = example
    reader = FrameReader()
    assert read_in(pieces, reader) == frames
    assert reader.buffered == 0


@given(cut_streams())
def test_buffered_counts_the_bytes_of_a_frame_that_is_not_whole(example: tuple[list[bytes], list[bytes]]) -> None:
    _, pieces = example
    reader = FrameReader()
    remaining = 0
    for piece in pieces:
        reader.feed(piece)
        buffered = reader.buffered
        remaining += len(piece) - sum(4 + len(frame) for frame in reader.frames())
        assert buffered == reader.buffered == remaining


@given(cut_streams())
def test_frames_can_be_taken_after_many_reads(example: tuple[list[bytes], list[bytes]]) -> None:
    frames, pieces = example
    reader = FrameReader()
    for piece in pieces:
        reader.feed(piece)
    assert reader.buffered == 0
    assert list(reader.frames()) == frames
    assert list(reader.frames()) == []


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_frames_are_read_byte_by_byte(frames: list[bytes]) -> None:
    assert read_in(single_bytes(framed(frames))) == frames


@given(st.lists(st.binary(max_size=20), max_size=3), st.binary(min_size=1, max_size=20), st.data())
def test_bytes_after_the_last_whole_frame_are_kept(frames: list[bytes], last: bytes, data: st.DataObject) -> None:
    tail = framed([last])
    cut = data.draw(st.integers(1, len(tail) - 1))
    reader = FrameReader()
    assert read_in([framed(frames) + tail[:cut]], reader) == frames
    assert reader.buffered == cut
    assert read_in([tail[cut:]], reader) == [last]
    assert reader.buffered == 0


def test_a_frame_of_size_0_is_a_frame() -> None:
    assert read_in([framed([b"", b"a", b"", b""])]) == [b"", b"a", b"", b""]


def test_an_empty_read_changes_nothing() -> None:
    reader = FrameReader()
    reader.feed(b"")
    assert list(reader.frames()) == []
    reader.feed(b"\0\0\0\1")
    reader.feed(b"")
    assert list(reader.frames()) == []
    assert reader.buffered == 4


def test_the_default_limit_is_kafkas() -> None:
    assert FrameReader().limit == FRAME_SIZE_MAX == 100 * 1024 * 1024


@pytest.mark.parametrize("limit", [0, 1, 5, 1000])
def test_a_frame_of_the_limit_is_read_and_a_larger_one_is_refused(limit: int) -> None:
    for pieces in ([framed([bytes(limit)])], single_bytes(framed([bytes(limit)]))):
        assert read_in(pieces, FrameReader(limit)) == [bytes(limit)]
    with pytest.raises(FrameTooLarge) as caught:
        read_in([framed([bytes(limit + 1)])], FrameReader(limit))
    assert (caught.value.size, caught.value.limit) == (limit + 1, limit)


def test_the_largest_limit_is_the_largest_int32() -> None:
    reader = FrameReader(2**31 - 1)
    reader.feed(b"\x7f\xff\xff\xff")
    assert list(reader.frames()) == []
    with pytest.raises(AssertionError):
        FrameReader(2**31)


HOSTILE = {"ffffffff": -1, "80000000": -(2**31), "7fffffff": 2**31 - 1, "06400001": FRAME_SIZE_MAX + 1}


@pytest.mark.parametrize(("size_hex", "size"), HOSTILE.items())
@pytest.mark.parametrize("how", ["alone", "after a frame", "byte by byte", "before more bytes"])
def test_a_hostile_size_is_refused_after_the_frames_before_it(size_hex: str, size: int, how: str) -> None:
    before = framed([b"good"]) if how == "after a frame" else b""
    after = b"more" * 10 if how == "before more bytes" else b""
    stream = before + bytes.fromhex(size_hex) + after
    found: list[bytes] = []
    with pytest.raises(FrameTooLarge, match=f"frame size {size} is not"):
        read_in(single_bytes(stream) if how == "byte by byte" else [stream], found=found)
    assert found == ([b"good"] if before else [])


def test_after_a_refused_size_the_reader_only_raises() -> None:
    reader = FrameReader()
    reader.feed(b"\xff" * 4)
    for _ in range(3):
        with pytest.raises(FrameTooLarge):
            list(reader.frames())
        reader.feed(framed([b"good"]))
        assert reader.buffered == 0


def test_an_http_request_is_refused() -> None:
    with pytest.raises(FrameTooLarge):
        read_in([b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"])


def peak_of(reader: FrameReader, pieces: Iterable[bytes]) -> int:
    """Return the peak of allocated bytes while the pieces are read."""
    tracemalloc.start()
    try:
        read_in(pieces, reader)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_with_received_bytes_not_with_the_announced_size() -> None:
    size_field = FRAME_SIZE_MAX.to_bytes(4, "big")
    assert peak_of(FrameReader(), [size_field + bytes(1000)]) < 20_000


def test_a_large_frame_in_small_pieces_allocates_a_small_multiple_of_its_size() -> None:
    size = 1 << 20
    stream = framed([bytes(size)])
    pieces = (stream[at : at + 7] for at in range(0, len(stream), 7))
    assert peak_of(FrameReader(), pieces) < 3 * size


def test_cpu_time_is_linear_in_the_size_of_a_frame() -> None:
    """CPU time for four times the size: 4 times as much if linear, 16 times if each read copies everything."""

    def seconds(size: int) -> float:
        stream = framed([bytes(size)])
        pieces = [stream[at : at + 64] for at in range(0, len(stream), 64)]
        start = time.thread_time()
        read_in(pieces)
        return time.thread_time() - start

    small, large = (min(seconds(size) for _ in range(5)) for size in (1 << 18, 1 << 20))
    assert large < 10 * small


def test_a_frame_of_two_reads_is_copied_once() -> None:
    """Most Produce requests are as large: one read takes 64 KB."""
    size = 100_000
    stream = framed([bytes(size)])
    assert peak_of(FrameReader(), [stream[:65536], stream[65536:]]) < 1.1 * size


@given(st.lists(st.integers(4, 3 * PIECE_SIZE_MIN), min_size=1, max_size=20))
def test_a_large_frame_is_read_in_reads_of_any_size(sizes: list[int]) -> None:
    frame = bytes(index % 251 for index in range(sum(sizes)))
    stream = framed([frame])
    reader = FrameReader()
    found: list[bytes] = []
    for size in sizes:
        reader.feed(stream[:size])
        found += reader.frames()
        stream = stream[size:]
    assert found == []
    reader.feed(stream)
    assert list(reader.frames()) == [frame]


def test_reads_of_one_byte_take_no_object_each() -> None:
    reader = FrameReader()
    tracemalloc.start()
    try:
        for read in single_bytes(framed([bytes(100_000)])[:-1]):
            reader.feed(read)
        assert tracemalloc.get_traced_memory()[0] < 120_000
    finally:
        tracemalloc.stop()
