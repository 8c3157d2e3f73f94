"""The row that counts what was read of a range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kproto.arrow.decoding import micros
from kproto.spark.schemas import COVERAGE

if TYPE_CHECKING:
    from kproto.arrow.reading import RangeReader
    from kproto.logs.ranges import OffsetRange


_SCHEMA = COVERAGE.arrow()


def coverage_row(wanted: OffsetRange, reader: RangeReader) -> pa.RecordBatch:
    """Return the row of `COVERAGE` of a range that a reader has read and checked to its end."""
    counts, blocks = reader.counts, reader.blocks
    skipped = [f"{kind}: {number}" for kind, number in sorted(counts.skipped.items())]
    row = {
        "topic": wanted.partition.topic,
        "partition": wanted.partition.number,
        "first_offset": blocks.first_offset,
        "last_offset": None if blocks.first_offset is None else blocks.next_offset - 1,
        "bytes": blocks.size,
        "torn_bytes": 0 if blocks.torn is None else blocks.torn.size,
        "batches": counts.batches,
        "records": counts.records,
        "commits": counts.commits,
        "tombstones": counts.tombstones,
        "group_records": counts.group_records,
        "markers": counts.markers,
        "skipped_records": counts.skipped.total(),
        "skipped_types": skipped,
        "earliest_ts": None if counts.earliest_ms is None else micros(counts.earliest_ms),
        "latest_ts": None if counts.latest_ms is None else micros(counts.latest_ms),
    }
    return pa.RecordBatch.from_pylist([row], schema=_SCHEMA)
