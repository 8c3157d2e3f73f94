"""Tables with few rows: their records are decoded one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.arrow.reference import to_arrow
from kproto.logs.batches import batch_at
from kproto.logs.ranges import RangeBlocks
from kproto.records.batches import last_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from kproto.arrow.record_rows import Row
    from kproto.arrow.schemas import Table
    from kproto.logs.batches import PlacedBatch
    from kproto.logs.ranges import OffsetRange
    from kproto.records.record import Record

    RowsOfRecord = Callable[[int | None, PlacedBatch, Record], Iterable[Row]]
    """The rows of a record in a batch; the first argument is the partition of the log."""


def range_rows(
    wanted: OffsetRange, table: Table, rows_of: RowsOfRecord, *, check_crc: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range, a batch for each block that has some.

    Raises:
        CorruptLog, NoLog, MissingPackage, OSError: while iterating: as `kproto.arrow.reading.RangeReader`.
    """
    for records in _records_of(wanted, check_crc=check_crc):
        rows = [row for placed, record in records for row in rows_of(wanted.partition.number, placed, record)]
        if rows:
            yield to_arrow(table, rows)


def _records_of(wanted: OffsetRange, *, check_crc: bool) -> Iterator[list[tuple[PlacedBatch, Record]]]:
    """Yield the records of each block with their batches, without end markers of transactions."""
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
