"""Reading a range of offsets of a partition, whatever its broker does meanwhile.

Each step looks up which segment holds the next offset, opens it, and reads on from there: an open file stays what it
was, even if it is renamed or removed. When it ends, the next offset is looked up again. If the cleaner has put two
segments in one meanwhile, that one is found, and what was read of it is left out.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import NoLog
from kproto.spark.decode import fast, plain
from kproto.spark.decode.blocks import Block, SegmentBlocks, first_field, last_offset
from kproto.spark.decode.counts import Counts
from kproto.spark.decode.files import Partition, SegmentFile, position_of
from kproto.spark.decode.tables import Decoded, Job, View
from kproto.spark.decode.transactions import Outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    Decoder = Callable[[Block, Job], Decoded]

DECODERS: dict[str, Decoder] = {"fast": fast.decode_block, "plain": plain.decode_block}
VANISHED_MAX = 100
"""Times that a segment may be gone between listing and opening it before something else is wrong."""


class Range(NamedTuple):
    """Offsets of a partition."""

    partition: Partition
    start_offset: int
    end_offset: int | None
    """The first that is not of it; None: to the end of the log as it is when it is read."""


class Place(NamedTuple):
    """Where in which file reading ended."""

    base_offset: int
    inode: int
    position: int
    was_newest: bool


class RangeBlocks:
    """The blocks of a range; then look at `next_offset`, `torn_size` and `place`.

    ``resume`` is the place of a reading that ended with this range's first offset: it saves looking that up.
    """

    def __init__(self, wanted: Range, resume: Place | None = None) -> None:
        self.next_offset: int = wanted.start_offset
        """What comes after the last batch read."""
        self.first_offset: int | None = None
        """The first offset of the first batch read; of a message set, its last."""
        self.size: int = 0
        """Bytes of the blocks read. At the range's ends they may hold batches that are not of it."""
        self.torn_size: int = 0
        """Bytes at the end of the newest segment that are no batch."""
        self.place = resume
        self._wanted = wanted

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks.

        Raises:
            Damaged: while iterating: what follows is neither a batch nor a torn tail.
            NoLog: while iterating: segments vanish each time before they can be opened.
            OSError: while iterating: a file can't be read.
        """
        vanished, finished = 0, None
        while (segment := self._next_segment()) is not None:
            try:
                file = open(segment.path, "rb")  # noqa: SIM115  # closed below, by its own with
            except FileNotFoundError:
                vanished += 1
                if vanished > VANISHED_MAX:
                    raise NoLog(f"{segment.label} is listed, but can't be opened") from None
                continue
            with file:
                if finished is not None and self._is_finished(segment, file, finished):
                    following = self._next_segment(segment.base_offset)
                    if following is None:
                        return
                    self.next_offset = max(self.next_offset, following.base_offset)
                    continue
                yield from self._blocks(segment, file)
                finished = self.place

    def _is_finished(self, segment: SegmentFile, file: BinaryIO, finished: Place) -> bool:
        """Tell whether a segment was read to its end. While it was the newest one, more may have come to it since."""
        inode = os.fstat(file.fileno()).st_ino
        return (segment.base_offset, inode) == finished[:2] and finished.was_newest == segment.is_newest

    def _next_segment(self, above: int | None = None) -> SegmentFile | None:
        """Return the segment that holds the next offset, or what comes after it; or the one after a base offset."""
        end = self._wanted.end_offset
        if end is not None and self.next_offset >= end:
            return None
        least = self.next_offset if above is None else above + 1
        segments = self._wanted.partition.segments()
        before = [segment for segment in segments if segment.base_offset <= least]
        if above is None and before:
            return before[-1]
        after = (segment for segment in segments if segment.base_offset >= least)
        found = next(after, None)
        return None if found is None or (end is not None and found.base_offset >= end) else found

    def _blocks(self, segment: SegmentFile, file: BinaryIO) -> Iterator[Block]:
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
                if self.first_offset is None:
                    self.first_offset = first_offset_from(block, self.next_offset)
                self.size += block.size
                yield block
                self.next_offset = after
        self.torn_size = blocks.torn_size
        inode = os.fstat(file.fileno()).st_ino
        self.place = Place(segment.base_offset, inode, blocks.position, segment.is_newest)

    def _position(self, segment: SegmentFile, file: BinaryIO) -> int:
        place, status = self.place, os.fstat(file.fileno())
        if place is not None and place[:2] == (segment.base_offset, status.st_ino) and place.position <= status.st_size:
            return place.position
        return position_of(segment, file.fileno(), self.next_offset)


class RangeReader:
    """Decodes a range; then look at `counts`, and at `blocks`."""

    def __init__(self, wanted: Range, view: View, *, decoder: str = "fast", check_crc: bool = True) -> None:
        self.blocks: RangeBlocks = RangeBlocks(wanted)
        self.counts: Counts = Counts()
        self._wanted = wanted
        self._view = view
        self._decode = DECODERS[decoder]
        self._check_crc = check_crc

    def __iter__(self) -> Iterator[Decoded]:
        """Yield what the blocks hold.

        Raises:
            Damaged, NoLog, OSError: while iterating, as `RangeBlocks`.
            MissingPackage: while iterating: a compression needs a package that is not installed.
        """
        ahead = LazyAhead(self._wanted.partition)
        for block in self.blocks:
            job = Job(
                view=self._view,
                log_partition=self._wanted.partition.number,
                outcomes=ahead,
                start_offset=self.blocks.next_offset,
                end_offset=self._wanted.end_offset,
                check_crc=self._check_crc,
            )
            decoded = self._decode(block, job)
            self.counts.add(decoded.counts)
            yield decoded


def first_offset_from(block: Block, offset: int) -> int:
    """Return the first offset of the batch that holds this one or comes behind it."""
    return next(first_field(block.data, start) for start in block.starts if last_offset(block.data, start) >= offset)


class LazyAhead:
    """`Outcomes` of a partition, made when the first transaction is met."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._outcomes: Outcomes | None = None

    def __call__(self, pairs: Sequence[tuple[int, int]]) -> list[int]:
        if not pairs:
            return []
        if self._outcomes is None:
            self._outcomes = Outcomes(RangeBlocks(Range(self._partition, pairs[0][1], None)))
        return self._outcomes(pairs)
