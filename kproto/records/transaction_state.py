"""The records of `__transaction_state`: one type, the state of a transactional id."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

from kproto.declaration import Array, Int8, Int16, Int32, Int64, String, Struct, nullable, since, tag
from kproto.records.coordinator import (
    CoordinatorKey,
    CoordinatorRecord,
    CoordinatorValue,
    RecordTypes,
    UnknownRecord,
    read_record,
)


class TransactionStatus(IntEnum):
    """The state of a transaction."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


class TransactionLogKey(CoordinatorKey, record_type=0):
    transactional_id: String


class PartitionsSchema(Struct):
    topic: String
    partition_ids: Array[Int32]


class TransactionLogValue(CoordinatorValue, versions=(0, 1), flexible=1):
    """v1: flexible; + previous_producer_id, next_producer_id, client_transaction_version, next_producer_epoch (tags)"""

    producer_id: Int64
    previous_producer_id: Annotated[Int64, since(1), tag(0, since(1))] = -1
    next_producer_id: Annotated[Int64, since(1), tag(1, since(1))] = -1
    producer_epoch: Int16
    next_producer_epoch: Annotated[Int16, since(1), tag(3, since(1))] = -1
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: Annotated[Array[PartitionsSchema] | None, nullable()]
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Annotated[Int16, since(1), tag(2, since(1))] = 0


RECORD_TYPES: RecordTypes = {TransactionLogKey._record_type: (TransactionLogKey, TransactionLogValue)}


def read_transaction_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord | UnknownRecord:
    """Return the decoded key and value of a record of `__transaction_state`.

    Raises:
        DecodeError: the key is missing, the version of the value is unknown, or one of them does not have its layout.
    """
    return read_record(RECORD_TYPES, key, value)
