"""The rows of some ranges, by view. With Spark, this code runs on the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kproto.arrow.assignment_rows import assignment_rows
from kproto.arrow.batch_rows import batch_rows
from kproto.arrow.decoding import View
from kproto.arrow.last_rows import LastRows
from kproto.arrow.reading import RangeReader
from kproto.arrow.share_state_rows import share_state_rows
from kproto.arrow.transaction_rows import transaction_rows
from kproto.spark.source.coverage import coverage_row
from kproto.spark.source.scan_rows import combined, scan_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto.logs.ranges import OffsetRange
    from kproto.spark.source.options import Options

    Batches = Iterator[pa.RecordBatch]

DECODER_VIEWS = {"records": View.COMMITS, "candidates": View.COMMITS, "latest": View.COMMITS, "groups": View.GROUPS}
LAST_ROWS = ("latest", "candidates")
"""The views with the last rows of each key."""


def rows_of(ranges: Sequence[OffsetRange], options: Options, groups: frozenset[str] | None = None) -> Batches:
    """Yield the rows of ranges, of ``groups`` only if given.

    Raises:
        CorruptLog, NoLog, MissingPackage, OSError: while iterating: as `kproto.arrow.reading.RangeReader`.
    """
    match options.view:
        case "batches":
            for wanted in ranges:
                yield from batch_rows(wanted)
        case "assignments":
            for wanted in ranges:
                for rows in assignment_rows(wanted, check_crc=options.check_crc):
                    yield _of_groups(rows, groups)
        case "transactions":
            for wanted in ranges:
                yield from transaction_rows(wanted, check_crc=options.check_crc)
        case "share_states":
            for wanted in ranges:
                yield from share_state_rows(wanted, check_crc=options.check_crc)
        case "coverage":
            for wanted in ranges:
                reader = RangeReader(wanted, View.NOTHING, decoder=options.decoder, check_crc=options.check_crc)
                for _ in reader:
                    pass  # the reader counts
                yield coverage_row(wanted, reader)
        case "scan":
            assert options.scan is not None, "the options were checked"
            yield from combined(scan_rows(ranges, options, options.scan))
        case view if view in LAST_ROWS:
            yield from _last_rows(ranges, options, groups)
        case _:
            schema = options.arrow_schema
            for wanted in ranges:
                for rows in _decoded(wanted, options, groups):
                    yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def _decoded(wanted: OffsetRange, options: Options, groups: frozenset[str] | None) -> Batches:
    reader = RangeReader(
        wanted,
        DECODER_VIEWS[options.view],
        decoder=options.decoder,
        check_crc=options.check_crc,
        only_last=options.view in LAST_ROWS,
    )
    for decoded in reader:
        rows = decoded.rows
        if rows is not None and len(rows := _of_groups(rows, groups)):
            yield rows


def _of_groups(rows: pa.RecordBatch, groups: frozenset[str] | None) -> pa.RecordBatch:
    return rows if groups is None else rows.filter(pc.is_in(rows["group_id"], pa.array(sorted(groups), pa.string())))


def _last_rows(ranges: Sequence[OffsetRange], options: Options, groups: frozenset[str] | None) -> Batches:
    last, pending = LastRows(), LastRows(("pending",))
    for wanted in ranges:
        for rows in _decoded(wanted, options, groups):
            last.add(rows)
            pending.add(rows)
    if options.view == "latest":
        yield from last.latest().to_batches()
    else:
        yield from last.rows().to_batches()
        yield from pending.rows().to_batches()
