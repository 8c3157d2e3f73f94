"""Rows of `TRANSACTION_STATES`: the records of `__transaction_state`, decoded one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.arrow.decoding import micros
from kproto.arrow.range_records import range_rows
from kproto.arrow.schemas import TRANSACTION_STATES
from kproto.errors import DecodeError
from kproto.logs.batches import reason_of
from kproto.logs.errors import BadValue
from kproto.records.coordinator import UnknownRecord
from kproto.records.transaction_state import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionStatus,
    read_transaction_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from kproto.arrow.record_rows import Row
    from kproto.logs.batches import PlacedBatch
    from kproto.logs.ranges import OffsetRange
    from kproto.records.record import Record

STATES = {status: status.name.title().replace("_", "") for status in TransactionStatus}
"""Kafka's names of the states, as its tools print them."""


def transaction_rows(wanted: OffsetRange, *, check_crc: bool) -> Iterator[pa.RecordBatch]:
    """Return the rows of a range.

    Raises:
        CorruptLog, NoLog, MissingPackage, OSError: while iterating: as `kproto.arrow.reading.RangeReader`.
    """
    return range_rows(wanted, TRANSACTION_STATES, _rows, check_crc=check_crc)


def _rows(log_partition: int | None, placed: PlacedBatch, record: Record) -> list[Row]:
    """Return the row of a record; none if its type is unknown."""
    try:
        found = read_transaction_record(record.key, record.value)
    except DecodeError as error:
        raise placed.damage(BadValue, reason_of(error), record.offset) from None
    if isinstance(found, UnknownRecord):
        return []
    key, value = found.key, found.value
    assert isinstance(key, TransactionLogKey), "the only type"
    identity = (log_partition, record.offset, micros(record.timestamp), key.transactional_id)
    if value is None:
        return [(*identity, True, *(None,) * 7)]
    assert isinstance(value, TransactionLogValue), "the only type"
    try:
        state = STATES[TransactionStatus(value.transaction_status)]
    except ValueError:
        raise placed.damage(BadValue, f"unknown state {value.transaction_status}", record.offset) from None
    partitions = [f"{topic.topic}-{n}" for topic in value.transaction_partitions or () for n in topic.partition_ids]
    return [
        (
            *identity,
            False,
            state,
            value.producer_id,
            value.producer_epoch,
            value.transaction_timeout_ms,
            micros(value.transaction_start_timestamp_ms),
            micros(value.transaction_last_update_timestamp_ms),
            sorted(partitions),
        )
    ]
