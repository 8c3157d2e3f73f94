"""The records of a range, one by one: for tables with few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.logs.batches import batch_at
from kproto.logs.ranges import RangeBlocks
from kproto.records.batches import last_offset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.logs.batches import PlacedBatch
    from kproto.logs.ranges import OffsetRange
    from kproto.records.record import Record


def records_of(wanted: OffsetRange, *, check_crc: bool) -> Iterator[list[tuple[PlacedBatch, Record]]]:
    """Yield the records of each block with their batches, without end markers of transactions.

    Raises:
        CorruptLog, NoLog, MissingPackage, OSError: while iterating: as `kproto.arrow.reading.RangeReader`.
    """
    for block in RangeBlocks(wanted):
        found: list[tuple[PlacedBatch, Record]] = []
        for start in block.starts:
            if last_offset(block.data, start) < wanted.start_offset:
                continue
            placed = batch_at(block, start, check_crc=check_crc)
            if not placed.batch.is_control:
                found += [(placed, record) for record in placed.records() if _is_in(wanted, record.offset)]
        yield found


def _is_in(wanted: OffsetRange, offset: int) -> bool:
    return wanted.start_offset <= offset and (wanted.end_offset is None or offset < wanted.end_offset)
