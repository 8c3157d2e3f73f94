"""The rows of `SHARE_STATES` of a log, and notes about what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.arrow.reference import to_arrow
from kproto.arrow.schemas import SHARE_STATES
from kproto.arrow.share_state_rows import rows_of_record
from kproto_server.inspect.batches import SegmentBatches
from kproto_server.inspect.directory import segments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from kproto.arrow.record_rows import Row
    from kproto.logs.files import PartitionDirectory

ROWS_MAX = 10_000
"""Rows of one record batch."""


def share_state_rows(log: PartitionDirectory, note: Callable[[str], None]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a log; ``note`` receives a torn tail, and what the table does not have.

    Raises:
        CorruptLog: while iterating: the log is invalid.
        MissingPackage: while iterating: a compression needs a package that is not installed.
        OSError: while iterating: a file cannot be read.
    """
    rows: list[Row] = []
    skipped = 0
    for segment in segments_of(log):
        batches = SegmentBatches(segment)
        for placed in batches:
            for record in placed.records():
                found = rows_of_record(log.number, placed, record)
                skipped += not found
                rows += found
            if len(rows) >= ROWS_MAX:
                yield to_arrow(SHARE_STATES, rows)
                rows = []
        if batches.torn is not None:
            note(str(batches.torn))
    if rows:
        yield to_arrow(SHARE_STATES, rows)
    if skipped:
        note(f"{log.path.name}: {skipped} records of unknown types, which no table has")
