"""Read a range of offsets of a partition while its broker appends, rolls, cleans and deletes segments.

Theory of operation. Each step lists the directory, opens the segment that holds the next offset, and reads on from
there. An open file keeps its content even if it is renamed or removed. At its end, the next offset is looked up again.
If the cleaner has merged two segments meanwhile, the merged one is found, and the batches that were read already are
left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import NoLog
from kproto.logs.blocks import Block, SegmentBlocks, TornTail
from kproto.logs.index import position_of, tail_offset
from kproto.logs.locations import open_file
from kproto.records.batches import first_offset, last_offset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.logs.files import PartitionDirectory, SegmentFile
    from kproto.logs.locations import LogFile

VANISHED_MAX = 100
"""How often a segment may vanish between listing and opening it before reading fails."""


class OffsetRange(NamedTuple):
    """Offsets of a partition."""

    partition: PartitionDirectory
    start_offset: int
    end_offset: int | None
    """The first offset after the range; None: the end of the log at the time of reading."""


class FilePosition(NamedTuple):
    """The file and the position at which reading ended."""

    base_offset: int
    identity: object
    position: int
    was_newest: bool


class RangeBlocks:
    """The blocks of a range. Iterate once, then read `next_offset`, `torn` and `end`.

    ``resume`` is the `end` of an iteration that stopped at the first offset of this range; it saves an index search.
    """

    def __init__(self, wanted: OffsetRange, resume: FilePosition | None = None) -> None:
        self.next_offset: int = wanted.start_offset
        """The offset after the last batch read."""
        self.first_offset: int | None = None
        """The first offset of the first batch read; of a message set, its last."""
        self.size: int = 0
        """Bytes of the batches read."""
        self.torn: TornTail | None = None
        self.end = resume
        self._wanted = wanted
        self._partition = wanted.partition
        """In a store with the listing that the range has, or a new one, and another whenever a file has vanished; on
        this machine with another one after each segment."""

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks.

        Raises:
            CorruptLog: while iterating: the next bytes are neither a batch nor a torn tail.
            NoLog: while iterating: segments vanish each time before they can be opened.
            OSError: while iterating: a file cannot be read.
        """
        vanished, finished = 0, None
        self._partition = self._wanted.partition.with_listing()
        # Both questions of a step are put to one listing: after a second one, a segment that was the newest could have
        # a follower, and batches that were appended in between would be left out.
        while (segment := self._next_segment(segments := self._segments())) is not None:
            try:
                with open_file(segment.path) as file:
                    if finished is not None and self._is_finished(segment, file, finished):
                        following = self._next_segment(segments, segment.base_offset)
                        if following is None:
                            return
                        # No batch of this segment has the next offset, so it was compacted away: go on after the gap.
                        self.next_offset = max(self.next_offset, following.base_offset)
                        continue
                    yield from self._blocks(segment, file)
                    finished = self.end
                    self._partition = self._partition.listed_if_local()
            except FileNotFoundError:  # in a store, a file can also vanish while it is read
                vanished += 1
                if vanished > VANISHED_MAX:
                    raise NoLog(f"{segment.label} is listed, but cannot be opened") from None
                self._partition = self._wanted.partition.listed()

    def _is_finished(self, segment: SegmentFile, file: LogFile, finished: FilePosition) -> bool:
        """Return whether a segment was read to its end.

        If it was the newest segment then and is not any more, batches may have been appended since: it is read again.
        """
        return (segment.base_offset, file.identity) == finished[:2] and finished.was_newest == segment.is_newest

    def _segments(self) -> list[SegmentFile]:
        """List the segments, if the range goes on."""
        end = self._wanted.end_offset
        return self._partition.segments() if end is None or self.next_offset < end else []

    def _next_segment(self, segments: list[SegmentFile], above: int | None = None) -> SegmentFile | None:
        """Return the segment that holds the next offset or the first one after it; or the first above a base offset."""
        end = self._wanted.end_offset
        least = self.next_offset if above is None else above + 1
        before = [segment for segment in segments if segment.base_offset <= least]
        if above is None and before:
            return before[-1]
        found = next((segment for segment in segments if segment.base_offset >= least), None)
        return None if found is None or (end is not None and found.base_offset >= end) else found

    def _blocks(self, segment: SegmentFile, file: LogFile) -> Iterator[Block]:
        blocks = SegmentBlocks(
            file,
            segment.label,
            base_offset=segment.base_offset,
            is_newest=segment.is_newest,
            position=self._position(segment, file),
            end_offset=self._wanted.end_offset,
        )
        for block in blocks:
            after = last_offset(block.data, block.starts[-1]) + 1
            if after > self.next_offset:
                start = _start_from(block, self.next_offset)
                if self.first_offset is None:
                    self.first_offset = first_offset(block.data, start)
                self.size += block.size - start
                yield block
                self.next_offset = after
        self.torn = blocks.torn
        self.end = FilePosition(segment.base_offset, file.identity, blocks.position, segment.is_newest)

    def _position(self, segment: SegmentFile, file: LogFile) -> int:
        end = self.end
        if end is not None and end[:2] == (segment.base_offset, file.identity) and end.position <= file.size:
            return end.position
        return position_of(segment, file, self.next_offset)


def log_end(partition: PartitionDirectory) -> int:
    """Return the offset after the last whole batch of a log; without batches, the base offset of its newest segment.

    Raises:
        CorruptLog, NoLog, OSError: as `RangeBlocks`.
    """
    blocks = RangeBlocks(OffsetRange(partition, tail_offset(partition) or 0, None))
    for _ in blocks:
        pass  # they are counted
    return max([blocks.next_offset, *(segment.base_offset for segment in partition.segments()[-1:])])


def _start_from(block: Block, offset: int) -> int:
    """Return the position in a block of the batch that holds ``offset`` or follows it."""
    return next(start for start in block.starts if last_offset(block.data, start) >= offset)
