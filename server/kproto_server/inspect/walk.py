"""Walking a segment's file: its batches in order, one in memory at a time, and a judgement of its end.

What may stand behind the last whole batch (LF-61, LF-62). A broker writes a batch in one go, so a crash leaves at most
the beginning of one, at the end of the newest segment; recovery drops it without a word. Such a *torn tail* is no
damage, and neither are zeros up to the end, which is what a preallocated file has there. Everything else is damage: a
whole batch with a wrong checksum (recovery drops it too, with all that follows, and warns), bytes that can't begin a
batch, and anything left over in a segment that is not the newest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import CorruptLog, DecodeError
from kproto.records.segment import PlacedBatch, SegmentReader, torn_beginning, whole_batch_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from kproto_server.inspect.directory import Segment

SLICE_SIZE = 256 * 1024
"""Bytes read at a time; memory is this, and the largest batch twice."""


class TornTail(NamedTuple):
    """What stands behind the last batch of a log and is none."""

    segment: str
    position: int
    size: int
    is_zeros: bool

    def __str__(self) -> str:
        what = "zeros, never written" if self.is_zeros else "of a batch that was not written to its end"
        return f"torn tail: {self.segment} at byte {self.position}: {self.size} bytes {what}"


class SegmentWalk:
    """One pass over a segment; iterate once, then look at `torn`."""

    def __init__(self, segment: Segment, read: Callable[[int], None] = lambda size: None) -> None:
        self.segment = segment
        self.next_offset = segment.base_offset
        """The least offset that the next batch can have."""
        self.torn: TornTail | None = None
        self._read = read
        """Told how many bytes were read, for those who count."""

    def __iter__(self) -> Iterator[PlacedBatch]:
        """Yield the batches.

        Raises:
            CorruptLog: while iterating: what follows is neither a batch nor a torn tail.
            OSError: while iterating: the file can't be read.
        """
        reader = SegmentReader()
        with open(self.segment.path, "rb") as file:
            try:
                while data := file.read(max(SLICE_SIZE, reader.missing)):
                    self._read(len(data))
                    reader.feed(data)
                    while (placed := reader.next_batch()) is not None:
                        self.next_offset = max(self.next_offset, placed.batch.last_offset + 1)
                        yield placed
            except DecodeError as error:
                if not self._ends_in_zeros(file, reader.position):
                    raise self.corrupt(reader.position, self.next_offset, str(error)) from None
                return
            self._judge_rest(file, reader)

    def corrupt(self, position: int, offset: int | None, reason: str) -> CorruptLog:
        """Return an error that names this segment."""
        return CorruptLog(self.segment.label, position, offset, reason)

    def _judge_rest(self, file: BinaryIO, reader: SegmentReader) -> None:
        rest, position = reader.rest, reader.position
        if not rest or self._ends_in_zeros(file, position):
            return
        if not self.segment.is_last:
            reason = f"{len(rest)} bytes after the last batch, and this is not the newest segment"
            raise self.corrupt(position, self.next_offset, reason)
        if not torn_beginning(rest, self.segment.base_offset, self.next_offset):
            raise self.corrupt(position, self.next_offset, f"{len(rest)} trailing bytes that begin no batch")
        if (within := whole_batch_within(rest, self.next_offset)) is not None:
            reason = (
                f"the batch announces more bytes than there are, but a whole one stands at byte {position + within}"
            )
            raise self.corrupt(position, self.next_offset, reason)
        self.torn = TornTail(self.segment.label, position, len(rest), is_zeros=False)

    def _ends_in_zeros(self, file: BinaryIO, position: int) -> bool:
        """Tell whether the newest segment is all zeros from here, and note it."""
        if not self.segment.is_last:
            return False
        file.seek(position)
        size = 0
        while data := file.read(SLICE_SIZE):
            if data.count(0) != len(data):
                return False
            size += len(data)
        self.torn = TornTail(self.segment.label, position, size, is_zeros=True)
        return True
