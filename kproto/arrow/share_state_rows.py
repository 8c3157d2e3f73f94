"""Rows of `SHARE_STATES`: the records of `__share_group_state`, decoded one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.arrow.decoding import micros
from kproto.arrow.range_records import range_rows
from kproto.arrow.record_rows import none_if
from kproto.arrow.schemas import SHARE_STATES
from kproto.errors import DecodeError
from kproto.logs.batches import reason_of
from kproto.logs.errors import BadValue
from kproto.records.coordinator import UnknownRecord
from kproto.records.share_group_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    read_share_state_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from kproto.arrow.record_rows import Row
    from kproto.logs.batches import PlacedBatch
    from kproto.logs.ranges import OffsetRange
    from kproto.records.record import Record

UNKNOWN = -1


def share_state_rows(wanted: OffsetRange, *, check_crc: bool) -> Iterator[pa.RecordBatch]:
    """Return the rows of a range.

    Raises:
        CorruptLog, NoLog, MissingPackage, OSError: while iterating: as `kproto.arrow.reading.RangeReader`.
    """
    return range_rows(wanted, SHARE_STATES, rows_of_record, check_crc=check_crc)


def rows_of_record(log_partition: int | None, placed: PlacedBatch, record: Record) -> list[Row]:
    """Return the row of a record; none if its type is unknown.

    Raises:
        BadValue: the record cannot be decoded.
    """
    try:
        found = read_share_state_record(record.key, record.value)
    except DecodeError as error:
        raise placed.damage(BadValue, reason_of(error), record.offset) from None
    if isinstance(found, UnknownRecord):
        return []
    key, value = found.key, found.value
    assert isinstance(key, ShareSnapshotKey | ShareUpdateKey), "the only types"
    kind = "snapshot" if isinstance(key, ShareSnapshotKey) else "update"
    identity = (log_partition, record.offset, micros(record.timestamp), key.group_id, key.topic_id, key.partition, kind)
    if value is None:
        return [(*identity, True, *(None,) * 8)]
    assert isinstance(value, ShareSnapshotValue | ShareUpdateValue), "the only types"
    snapshot = value if isinstance(value, ShareSnapshotValue) else None
    return [
        (
            *identity,
            False,
            value.snapshot_epoch,
            None if snapshot is None else snapshot.state_epoch,
            value.leader_epoch,
            none_if(UNKNOWN, value.start_offset),
            none_if(UNKNOWN, value.delivery_complete_count),
            None if snapshot is None else micros(snapshot.create_timestamp),
            None if snapshot is None else micros(snapshot.write_timestamp),
            [
                f"{batch.first_offset}-{batch.last_offset} {batch.delivery_state} {batch.delivery_count}"
                for batch in value.state_batches
            ],
        )
    ]
