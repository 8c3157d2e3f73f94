"""The records of `__share_group_state`: snapshots of the state of share partitions, and their updates (KIP-932)."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int8, Int16, Int32, Int64, String, Struct, Uuid, tag
from kproto.records.coordinator import (
    CoordinatorKey,
    CoordinatorRecord,
    CoordinatorValue,
    RecordTypes,
    UnknownRecord,
    read_record,
)


class StateBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    """0: available; 2: acknowledged; 4: archived."""
    delivery_count: Int16


class ShareSnapshotKey(CoordinatorKey, record_type=0):
    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareSnapshotValue(CoordinatorValue, flexible=0):
    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, tag(0)] = -1
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: Array[StateBatch]


class ShareUpdateKey(CoordinatorKey, record_type=1):
    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareUpdateValue(CoordinatorValue, flexible=0):
    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    """-1: unchanged."""
    delivery_complete_count: Annotated[Int32, tag(0)] = -1
    state_batches: Array[StateBatch]


RECORD_TYPES: RecordTypes = {
    ShareSnapshotKey._record_type: (ShareSnapshotKey, ShareSnapshotValue),
    ShareUpdateKey._record_type: (ShareUpdateKey, ShareUpdateValue),
}


def read_share_state_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord | UnknownRecord:
    """Return the decoded key and value of a record of `__share_group_state`.

    Raises:
        DecodeError: the key is missing, the version of the value is unknown, or one of them does not have its layout.
    """
    return read_record(RECORD_TYPES, key, value)
