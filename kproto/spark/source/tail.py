"""Where the end of a growing log is, for a stream: looked at again and again, each time only what is new.

The end that counts is, as for a consumer that reads committed records, before the first record of a transaction that
has no end yet: behind it a row's txn_state could still change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.decode.reading import Range, RangeBlocks
from kproto.spark.decode.transactions import Begun, transactional_events

if TYPE_CHECKING:
    from kproto.spark.decode.files import Partition
    from kproto.spark.decode.reading import Place


class LogTail:
    """The end of one partition's log, from an offset on that is before no open transaction.

    What it remembers only saves reading: it begins anew wherever it is told to.
    """

    def __init__(self, partition: Partition, start_offset: int) -> None:
        self._partition = partition
        self._next_offset = start_offset
        self._open: dict[int, int] = {}
        """Producer id -> first offset of its transaction."""
        self._place: Place | None = None
        self._listed: list[tuple[int, int]] = []
        """Base offsets and sizes of the segments at the last look."""

    def end(self, *, stable: bool) -> int:
        """Return the offset behind the last whole batch; if ``stable``, not behind an open transaction's first.

        Raises:
            Damaged: a batch's size can't be, or a marker can't be read.
            OSError: the log can't be read.
        """
        listed = [(one.base_offset, size) for one, size in self._partition.sizes()]
        if listed != self._listed:
            self._advance()
            self._listed = listed
        return min([*self._open.values(), self._next_offset]) if stable else self._next_offset

    def start(self) -> int:
        """Return the base offset of the first segment; 0 if there is none."""
        return next((segment.base_offset for segment in self._partition.segments()), 0)

    def _advance(self) -> None:
        blocks = RangeBlocks(Range(self._partition, self._next_offset, None), self._place)
        for block in blocks:
            for event in transactional_events(block, blocks.next_offset):
                if isinstance(event, Begun):
                    self._open.setdefault(event.producer_id, event.offset)
                else:
                    self._open.pop(event.producer_id, None)
        self._next_offset, self._place = blocks.next_offset, blocks.place
