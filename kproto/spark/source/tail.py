"""The end of a growing log, for a stream. Each look reads only what was appended since the one before.

As for a consumer with read_committed isolation, the stable end is before the first record of an open transaction: after
it, the txn_state of a row could still change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.logs.ranges import OffsetRange, RangeBlocks, log_end
from kproto.logs.transactions import TransactionalBatch, transactional_events

if TYPE_CHECKING:
    from kproto.logs.files import PartitionDirectory
    from kproto.logs.ranges import FilePosition


class LogTail:
    """The end of one partition's log, from a start offset on that is before every open transaction.

    All state is a cache: a new `LogTail` from the same offset returns the same ends.
    """

    def __init__(self, partition: PartitionDirectory, start_offset: int) -> None:
        self._partition = partition
        self._next_offset = start_offset
        self._open: dict[int, int] = {}
        """First offset of each open transaction, by producer id."""
        self._resume: FilePosition | None = None
        self._listed: list[tuple[int, int]] = []
        """Base offsets and sizes of the segments at the last look."""

    def end(self, *, stable: bool) -> int:
        """Return the offset after the last whole batch; if ``stable``, at most the first offset of an open transaction.

        Raises:
            CorruptLog: a batch has an impossible size, or a marker cannot be decoded.
            OSError: the log cannot be read.
        """
        partition = self._partition.listed()
        listed = [(segment.base_offset, size) for segment, size in partition.sizes()]
        if listed != self._listed:
            self._advance(partition)
            self._listed = listed
            # Without batches from its first offset on, the name of the newest segment is the end of the log.
            self._next_offset = max([self._next_offset, *(base for base, _ in listed[-1:])])
        return min([*self._open.values(), self._next_offset]) if stable else self._next_offset

    def start(self) -> int:
        """Return the base offset of the first segment; 0 if there is none."""
        return next((segment.base_offset for segment in self._partition.listed().segments()), 0)

    def _advance(self, partition: PartitionDirectory) -> None:
        blocks = RangeBlocks(OffsetRange(partition, self._next_offset, None), self._resume)
        for block in blocks:
            for event in transactional_events(block, blocks.next_offset):
                if isinstance(event, TransactionalBatch):
                    self._open.setdefault(event.producer_id, event.offset)
                else:
                    self._open.pop(event.producer_id, None)
        self._next_offset, self._resume = blocks.next_offset, blocks.end
        # Nothing new: the log may have been truncated, or created again.
        if blocks.first_offset is None and (end := log_end(partition)) < self._next_offset:
            self._next_offset, self._resume = end, None
            self._open.clear()
