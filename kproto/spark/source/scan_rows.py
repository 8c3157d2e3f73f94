"""The rows of a scan: one decoding returns the needed tables and the coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kproto.arrow.batch_rows import batch_rows, rows_of_block
from kproto.arrow.decoding import View
from kproto.arrow.last_rows import COUNTED_STATES, LastRows
from kproto.arrow.reading import RangeReader
from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES, Table
from kproto.spark.schemas import COVERAGE
from kproto.spark.source.coverage import coverage_row
from kproto.spark.source.scan import NESTED, ROW_OF

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto.logs.ranges import OffsetRange
    from kproto.spark.source.options import Options
    from kproto.spark.source.scan import Scan

    Batches = Iterator[pa.RecordBatch]

POSITIONS = {COMMITS.name: "log_offset", GROUP_METADATA.name: "log_offset", LOG_BATCHES.name: "last_offset"}


def scan_rows(ranges: Sequence[OffsetRange], options: Options, scan: Scan) -> Batches:
    """Yield the rows of ranges.

    Raises:
        CorruptLog, NoLog, MissingPackage, OSError: while iterating: as `kproto.arrow.reading.RangeReader`.
    """
    last, pending = LastRows(COUNTED_STATES), LastRows(("pending",))
    for wanted in ranges:
        if not scan.decodes(wanted.partition):
            for rows in batch_rows(wanted):
                yield from _made(LOG_BATCHES, rows, wanted, scan)
            continue
        reader = RangeReader(wanted, View.RECORDS, decoder=options.decoder, check_crc=options.check_crc)
        for decoded in reader:
            if LOG_BATCHES.name in scan.after:
                yield from _made(LOG_BATCHES, _batches(reader, wanted, markers_only=scan.markers_only), wanted, scan)
            if GROUP_METADATA.name in scan.after:
                yield from _made(GROUP_METADATA, _of_groups(decoded.groups, scan), wanted, scan)
            commits = _of_groups(decoded.rows, scan) if COMMITS.name in scan.after else None
            if commits is not None and scan.last_commits:
                last.add(commits)
                pending.add(commits)
            elif commits is not None:
                yield from _made(COMMITS, commits, wanted, scan)
        yield _row_batch(COVERAGE, coverage_row(wanted, reader))
    for kept in (last, pending):
        for rows in kept.rows().to_batches():
            yield _row_batch(COMMITS, rows)


def _batches(reader: RangeReader, wanted: OffsetRange, *, markers_only: bool) -> pa.RecordBatch:
    assert reader.block is not None, "the reader has yielded"
    start = max(wanted.start_offset, reader.blocks.next_offset)
    rows = rows_of_block(reader.block, wanted.partition.topic, wanted.partition.number, start, wanted.end_offset)
    return rows.filter(rows["control"]) if markers_only else rows


def _of_groups(rows: pa.RecordBatch | None, scan: Scan) -> pa.RecordBatch:
    assert rows is not None, "the view has both tables"
    return rows.filter(pc.is_in(rows["group_id"], scan.of_groups)) if scan.groups else rows


def _made(table: Table, rows: pa.RecordBatch, wanted: OffsetRange, scan: Scan) -> Batches:
    """Yield the rows after the offset up to which they are left out."""
    mark = scan.after.get(table.name, {}).get(wanted.partition.path.name)
    if mark is not None:
        rows = rows.filter(pc.greater(rows[POSITIONS[table.name]], mark))
    if len(rows):
        yield _row_batch(table, rows)


def _row_batch(table: Table, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a table as rows of a scan."""
    count = len(rows)
    columns = [pa.repeat(table.name, count)]
    commits = COMMITS.arrow()
    columns += rows.columns if table is COMMITS else [pa.nulls(count, one.type) for one in commits]
    names = [ROW_OF, *commits.names]
    for nested in NESTED:
        fields = list(nested.arrow())
        is_it = nested is table
        columns.append(
            pa.StructArray.from_arrays(rows.columns, fields=fields) if is_it else pa.nulls(count, pa.struct(fields))
        )
        names.append(nested.name)
    return pa.RecordBatch.from_arrays(columns, names=names)
