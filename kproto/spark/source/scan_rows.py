"""The rows of a scan: one decoding returns the needed tables and the coverage."""

from __future__ import annotations

from pathlib import Path
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
from kproto.spark.source.kept import Writer, task_name
from kproto.spark.source.scan import NESTED, ROW_OF

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto.logs.ranges import OffsetRange
    from kproto.spark.source.options import Options
    from kproto.spark.source.scan import Scan

    Batches = Iterator[pa.RecordBatch]
    Found = Iterator[tuple[Table, pa.RecordBatch]]

POSITIONS = {COMMITS.name: "log_offset", GROUP_METADATA.name: "log_offset", LOG_BATCHES.name: "last_offset"}


BATCH_ROWS = 4096
"""Fewer rows are combined with the next: a batch of a scan has 60 arrays, which take 200 kB even if it has one row, and
a log of many small partitions has thousands of such batches."""
_COMMITS = COMMITS.arrow()
_FIELDS = {nested.name: list(nested.arrow()) for nested in NESTED}


def combined(batches: Batches) -> Batches:
    """Yield the rows, in order, in batches of at least `BATCH_ROWS`, but for the last one before a large one."""
    small: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        is_large = len(batch) >= BATCH_ROWS
        if not is_large:
            small.append(batch)
            count += len(batch)
        if small and (is_large or count >= BATCH_ROWS):
            yield _one(small)
            small, count = [], 0
        if is_large:
            yield batch
    if small:
        yield _one(small)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


def scan_rows(ranges: Sequence[OffsetRange], options: Options, scan: Scan) -> Batches:
    """Yield the rows of ranges; with a folder, write them, and yield the coverage.

    Raises:
        CorruptLog, NoLog, MissingPackage, OSError: while iterating: as `kproto.arrow.reading.RangeReader`.
    """
    found = _rows_by_table(ranges, options, scan)
    if scan.folder is None:
        return (_row_batch(table, rows) for table, rows in found)
    return _written(found, scan, task_name(ranges)) if ranges else iter(())


def _written(found: Found, scan: Scan, task: str) -> Batches:
    """Write the rows to files; yield the coverage when they are complete."""
    assert scan.folder is not None, "the caller has looked"
    writers: dict[str, Writer] = {}
    coverage = []
    for table, rows in found:
        if table is COVERAGE:
            coverage.append(rows)
        else:
            if table.name not in writers:
                writers[table.name] = Writer(table, Path(scan.folder), task, day_of=scan.days.get(table.name))
            writers[table.name].add(rows)
    for writer in writers.values():
        writer.close()
    yield from coverage


def _rows_by_table(ranges: Sequence[OffsetRange], options: Options, scan: Scan) -> Found:
    last, pending = LastRows(COUNTED_STATES), LastRows(("pending",))
    for wanted in ranges:
        if not scan.decodes(wanted.partition):
            for rows in batch_rows(wanted):
                yield from _new(LOG_BATCHES, rows, wanted, scan)
            continue
        # Records about groups are decoded one by one, so their rows are only made if the scan has them.
        view = View.RECORDS if GROUP_METADATA.name in scan.after else View.COMMITS
        reader = RangeReader(
            wanted, view, decoder=options.decoder, check_crc=options.check_crc, only_last=scan.last_commits
        )
        for decoded in reader:
            if LOG_BATCHES.name in scan.after:
                yield from _new(LOG_BATCHES, _batches(reader, wanted, markers_only=scan.markers_only), wanted, scan)
            if GROUP_METADATA.name in scan.after:
                yield from _new(GROUP_METADATA, _of_groups(decoded.groups, scan), wanted, scan)
            commits = _of_groups(decoded.rows, scan) if COMMITS.name in scan.after else None
            if commits is not None and scan.last_commits:
                last.add(commits)
                pending.add(commits)
            elif commits is not None:
                yield from _new(COMMITS, commits, wanted, scan)
        yield COVERAGE, coverage_row(wanted, reader)
    for kept in (last, pending):
        for rows in kept.rows().to_batches():
            yield COMMITS, rows


def _batches(reader: RangeReader, wanted: OffsetRange, *, markers_only: bool) -> pa.RecordBatch:
    assert reader.block is not None, "the reader has yielded"
    start = max(wanted.start_offset, reader.blocks.next_offset)
    rows = rows_of_block(reader.block, wanted.partition.topic, wanted.partition.number, start, wanted.end_offset)
    return rows.filter(rows["control"]) if markers_only else rows


def _of_groups(rows: pa.RecordBatch | None, scan: Scan) -> pa.RecordBatch:
    assert rows is not None, "the view has both tables"
    return rows.filter(pc.is_in(rows["group_id"], scan.of_groups)) if scan.groups else rows


def _new(table: Table, rows: pa.RecordBatch, wanted: OffsetRange, scan: Scan) -> Found:
    """Yield the rows after the offset up to which they are left out."""
    partition = wanted.partition  # its directory may have another name
    mark = scan.after.get(table.name, {}).get(f"{partition.topic}-{partition.number}")
    if mark is not None:
        rows = rows.filter(pc.greater(rows[POSITIONS[table.name]], mark))
    if len(rows):
        yield table, rows


def _row_batch(table: Table, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a table as rows of a scan."""
    count = len(rows)
    columns = [pa.repeat(table.name, count)]
    columns += rows.columns if table is COMMITS else [pa.nulls(count, one.type) for one in _COMMITS]
    names = [ROW_OF, *_COMMITS.names]
    for nested in NESTED:
        fields = _FIELDS[nested.name]
        is_it = nested is table
        columns.append(
            pa.StructArray.from_arrays(rows.columns, fields=fields) if is_it else pa.nulls(count, pa.struct(fields))
        )
        names.append(nested.name)
    return pa.RecordBatch.from_arrays(columns, names=names)
