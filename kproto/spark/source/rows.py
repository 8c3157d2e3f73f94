"""The rows of a task, by view. This code runs on Spark's workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kproto.arrow.batch_rows import batch_rows
from kproto.arrow.decoding import View, micros
from kproto.arrow.last_rows import LastRows
from kproto.arrow.reading import RangeReader
from kproto.spark.schemas import COVERAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.logs.ranges import OffsetRange
    from kproto.spark.source.options import Options
    from kproto.spark.source.plan import Task

    Batches = Iterator[pa.RecordBatch]

DECODER_VIEWS = {"records": View.COMMITS, "candidates": View.COMMITS, "latest": View.COMMITS, "groups": View.GROUPS}


def task_rows(task: Task, options: Options, groups: frozenset[str] | None = None) -> Batches:
    """Yield the rows of a task, of ``groups`` only if given.

    Raises:
        CorruptLog, NoLog, MissingPackage, OSError: while iterating: as `kproto.arrow.reading.RangeReader`.
    """
    match options.view:
        case "batches":
            for wanted in task.ranges:
                yield from batch_rows(wanted)
        case "coverage":
            for wanted in task.ranges:
                yield _coverage_row(wanted, options)
        case "latest" | "candidates":
            yield from _last_rows(task, options, groups)
        case _:
            for wanted in task.ranges:
                yield from _decoded(wanted, options, groups)


def _decoded(wanted: OffsetRange, options: Options, groups: frozenset[str] | None) -> Batches:
    view = DECODER_VIEWS[options.view]
    for decoded in RangeReader(wanted, view, decoder=options.decoder, check_crc=options.check_crc):
        rows = decoded.rows
        if rows is not None and groups is not None:
            rows = rows.filter(pc.is_in(rows["group_id"], pa.array(sorted(groups), pa.string())))
        if rows is not None and len(rows):
            yield rows


def _last_rows(task: Task, options: Options, groups: frozenset[str] | None) -> Batches:
    last = LastRows()
    for wanted in task.ranges:
        for rows in _decoded(wanted, options, groups):
            last.add(rows)
    table = last.latest() if options.view == "latest" else last.rows()
    yield from table.to_batches()


def _coverage_row(wanted: OffsetRange, options: Options) -> pa.RecordBatch:
    """Read and check all of a range; return the row that counts it."""
    reader = RangeReader(wanted, View.NOTHING, decoder=options.decoder, check_crc=options.check_crc)
    for _ in reader:
        pass  # the reader counts
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
    return pa.RecordBatch.from_pylist([row], schema=COVERAGE.arrow())
