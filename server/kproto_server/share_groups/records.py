"""The records of `__share_group_state`: the states of share partitions as Kafka writes and reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.coordinator import CoordinatorRecord, encode_key, encode_value
from kproto.records.share_group_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    read_share_state_record,
)
from kproto.records.share_group_state import StateBatch as StoredBatch
from kproto_server.coordinator.offsets_log.batches import keyed_batch
from kproto_server.coordinator.record_load import RecordLoad
from kproto_server.share_groups.in_flight import StateBatch
from kproto_server.share_groups.share_states import (
    NO_EPOCH,
    SharePartitionKey,
    ShareState,
    StateWrite,
    followed,
    updated,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

VALUE_VERSION = 0


def snapshot_batch(key: SharePartitionKey, state: ShareState | None, now_ms: int) -> bytes:
    """Return a batch with the whole state of a share partition, or with its tombstone.

    Raises:
        EncodeError: the group id is too long for the format.
    """
    value = None if state is None else encode_value(_snapshot(state), VALUE_VERSION)
    return keyed_batch(encode_key(ShareSnapshotKey(**key._asdict())), value, now_ms)


def update_batch(key: SharePartitionKey, snapshot_epoch: int, write: StateWrite, now_ms: int) -> bytes:
    """Return a batch with what a write changes.

    Raises:
        EncodeError: the group id is too long for the format.
    """
    value = ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=write.leader_epoch,
        start_offset=write.start_offset,
        delivery_complete_count=write.done_count,
        state_batches=_stored(write.batches),
    )
    return keyed_batch(encode_key(ShareUpdateKey(**key._asdict())), encode_value(value, VALUE_VERSION), now_ms)


def _snapshot(state: ShareState) -> ShareSnapshotValue:
    return ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.done_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=_stored(state.batches),
    )


def _stored(batches: tuple[StateBatch, ...]) -> tuple[StoredBatch, ...]:
    return tuple(StoredBatch(**batch._asdict()) for batch in batches)


def _restored(batches: tuple[StoredBatch, ...]) -> tuple[StateBatch, ...]:
    return tuple(StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in batches)


class ShareStateLoad(RecordLoad):
    """The load of one partition of `__share_group_state`. Call `step` until it returns True."""

    def __init__(self, slices: Iterable[bytes], updates_max: int) -> None:
        """``slices``: the content of the log; they may end anywhere. ``updates_max``: how many updates may follow a
        snapshot."""
        self._updates_max = updates_max
        self.states: dict[SharePartitionKey, ShareState] = {}
        self.snapshot_offsets: dict[SharePartitionKey, int] = {}
        """Where the log has the last snapshot of each state."""
        super().__init__(slices, self._apply)

    def _apply(self, key: bytes | None, value: bytes | None) -> None:
        name = replay(self.states, key, value, self._updates_max)
        if name in self.states:
            self.snapshot_offsets[name] = self.offset
        elif name is not None:
            self.snapshot_offsets.pop(name, None)


def replay(
    states: dict[SharePartitionKey, ShareState], key: bytes | None, value: bytes | None, updates_max: int
) -> SharePartitionKey | None:
    """Apply a record of the log to the states; unknown types change nothing.

    Returns:
        the share partition of a snapshot or a tombstone; None for other records.

    Raises:
        DecodeError: key or value is malformed.
    """
    found = read_share_state_record(key, value)
    if not isinstance(found, CoordinatorRecord):
        return None
    of = found.key
    if isinstance(of, ShareSnapshotKey):
        name = SharePartitionKey(of.group_id, of.topic_id, of.partition)
        if isinstance(found.value, ShareSnapshotValue):
            state, before = _state(found.value), states.get(name)
            states[name] = state if before is None else followed(before, state, updates_max)
        else:
            states.pop(name, None)
        return name
    if isinstance(of, ShareUpdateKey) and isinstance(found.value, ShareUpdateValue):
        name = SharePartitionKey(of.group_id, of.topic_id, of.partition)
        update = found.value
        write = StateWrite(
            NO_EPOCH,
            update.leader_epoch,
            update.start_offset,
            update.delivery_complete_count,
            _restored(update.state_batches),
        )
        # As in Kafka, an update whose snapshot was deleted makes a state, which the next snapshot replaces.
        states[name] = updated(states.get(name, ShareState(snapshot_epoch=update.snapshot_epoch)), write)
    return None


def _state(value: ShareSnapshotValue) -> ShareState:
    return ShareState(
        value.start_offset,
        value.state_epoch,
        value.leader_epoch,
        value.snapshot_epoch,
        value.delivery_complete_count,
        _restored(value.state_batches),
        value.create_timestamp,
        value.write_timestamp,
        fence_epoch=value.leader_epoch,
    )
