"""The batches of a segment, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.logs.batches import PlacedBatch, batch_at
from kproto.logs.blocks import SegmentBlocks, TornTail
from kproto.logs.locations import open_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto.logs.files import SegmentFile


class SegmentBatches:
    """One pass over the batches of a segment. Iterate once, then read `torn`.

    ``progress`` receives the number of bytes that were read.
    """

    def __init__(self, segment: SegmentFile, progress: Callable[[int], None] = lambda size: None) -> None:
        self.torn: TornTail | None = None
        self._segment = segment
        self._progress = progress

    def __iter__(self) -> Iterator[PlacedBatch]:
        """Yield the batches; their headers and checksums are valid.

        Raises:
            CorruptLog: while iterating: the next bytes are neither a valid batch nor a torn tail.
            OSError: while iterating: the file cannot be read.
        """
        segment = self._segment
        with open_file(segment.path) as file:
            blocks = SegmentBlocks(file, segment.label, base_offset=segment.base_offset, is_newest=segment.is_newest)
            for block in blocks:
                self._progress(block.size)
                for start in block.starts:
                    yield batch_at(block, start)
            self.torn = blocks.torn
