"""The rows of `SHARE_STATES`: the records of `__share_group_state`, decoded one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kproto.arrow.schemas import SHARE_STATES
from kproto.errors import CorruptLog, DecodeError
from kproto.records.coordinator import CoordinatorRecord
from kproto.records.share_group_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    read_share_state_record,
)
from kproto_server.inspect.batches import SegmentBatches
from kproto_server.inspect.directory import segments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto.logs.batches import PlacedBatch
    from kproto.logs.files import PartitionDirectory
    from kproto.records.record import Record

    Row = dict[str, Any]

ROWS_MAX = 10_000
"""Rows of one record batch."""
UNKNOWN = -1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
                row = _row(log.number, placed, record)
                skipped += row is None
                rows += [] if row is None else [row]
            if len(rows) >= ROWS_MAX:
                yield _table(rows)
                rows = []
        if batches.torn is not None:
            note(str(batches.torn))
    if rows:
        yield _table(rows)
    if skipped:
        note(f"{log.path.name}: {skipped} records of unknown types, which no table has")


def _table(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=SHARE_STATES.arrow())


def _row(number: int | None, placed: PlacedBatch, record: Record) -> Row | None:
    try:
        found = read_share_state_record(record.key, record.value)
    except DecodeError as error:
        raise placed.damage(CorruptLog, str(error), record.offset) from None
    if not isinstance(found, CoordinatorRecord) or not isinstance(found.key, ShareSnapshotKey | ShareUpdateKey):
        return None
    row: Row = {
        "log_partition": number,
        "log_offset": record.offset,
        "log_ts": _time(record.timestamp),
        "group_id": found.key.group_id,
        "topic_id": found.key.topic_id,
        "partition": found.key.partition,
        "kind": "snapshot" if isinstance(found.key, ShareSnapshotKey) else "update",
        "tombstone": found.value is None,
    }
    value = found.value
    if isinstance(value, ShareSnapshotValue):
        row["state_epoch"] = value.state_epoch
        row["create_ts"], row["write_ts"] = _time(value.create_timestamp), _time(value.write_timestamp)
    if isinstance(value, ShareSnapshotValue | ShareUpdateValue):
        row["snapshot_epoch"], row["leader_epoch"] = value.snapshot_epoch, value.leader_epoch
        row["start_offset"] = _known(value.start_offset)
        row["delivery_complete_count"] = _known(value.delivery_complete_count)
        row["batches"] = [
            f"{batch.first_offset}-{batch.last_offset} {batch.delivery_state} {batch.delivery_count}"
            for batch in value.state_batches
        ]
    return row


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _time(milliseconds: int) -> datetime | None:
    """Return a timestamp; the first or last moment of the years 1 to 9999 if it is outside of them."""
    if milliseconds == UNKNOWN:
        return None
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return (datetime.max if milliseconds > 0 else datetime.min).replace(tzinfo=UTC)
