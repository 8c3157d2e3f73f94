"""The share coordinator's state: what is stored of each share partition.

Theory of operation. The leader of a share partition stores what members have acknowledged and released, as batches of
records; it keeps to itself what they have acquired. Each write names the state epoch, which rises whenever an
administrator moves the start offset, and the leader epoch; older ones are fenced. In the log, a snapshot has the whole
state; after `share.coordinator.snapshot.update.records.per.snapshot` updates the next write makes a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import wrapped
from kproto_server.cluster.topics import Refusal
from kproto_server.share_groups.in_flight import StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.share_groups.version_behavior import ShareBehavior

NO_OFFSET = -1
"""The start offset of a share partition that has none yet: the first fetch chooses it."""
NO_EPOCH = -1
NO_COUNT = -1
NO_LAG = -1
NEGATIVE_LEADER_EPOCH = "The leader epoch cannot be a negative number."
NEGATIVE_STATE_EPOCH = "The state epoch cannot be a negative number."
NO_STATE_TO_READ = "Read operation on uninitialized share partition not allowed."
NO_STATE_TO_WRITE = "Write operation on uninitialized share partition not allowed."


class SharePartitionKey(NamedTuple):
    """A partition, as a share group reads it."""

    group_id: str
    topic_id: bytes
    partition: int


class ShareState(NamedTuple):
    """What is stored of one share partition."""

    start_offset: int = NO_OFFSET
    state_epoch: int = 0
    leader_epoch: int = 0
    snapshot_epoch: int = 0
    done_count: int = NO_COUNT
    """The delivery complete count: how many of the records in flight are done with."""
    batches: tuple[StateBatch, ...] = ()
    created_ms: int = -1
    written_ms: int = -1
    update_count: int = 0
    """Updates since a snapshot was due."""
    fence_epoch: int = 0
    """The highest leader epoch so far; writes of older leaders are fenced."""


class StateWrite(NamedTuple):
    """A write of one share partition's state."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    done_count: int
    batches: tuple[StateBatch, ...]


def lag_of(state: ShareState, end_offset: int) -> int:
    """Return how many records up to a log end offset are not done with; `NO_LAG` if that is not known."""
    if NO_OFFSET in (state.start_offset, state.done_count):
        return NO_LAG
    return wrapped(end_offset - state.start_offset - state.done_count)


def read_refusal(state: ShareState | None, leader_epoch: int, behavior: ShareBehavior) -> Refusal | None:
    """Return why a leader may not read a state; None if it may."""
    if behavior.refuses_negative_epochs and leader_epoch < 0:
        return Refusal(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
    if state is None:
        return Refusal(ErrorCode.INVALID_REQUEST, NO_STATE_TO_READ)
    is_any = leader_epoch == NO_EPOCH and behavior.reads_without_leader_epoch
    return None if is_any or leader_epoch >= state.fence_epoch else _refused(ErrorCode.FENCED_LEADER_EPOCH, behavior)


def write_refusal(state: ShareState | None, write: StateWrite, behavior: ShareBehavior) -> Refusal | None:
    """Return why a write is refused; None if it is not."""
    if behavior.refuses_negative_epochs and write.leader_epoch < 0:
        return Refusal(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
    if behavior.refuses_negative_epochs and write.state_epoch < 0:
        return Refusal(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
    if state is None:
        return Refusal(ErrorCode.INVALID_REQUEST, NO_STATE_TO_WRITE)
    if NO_EPOCH != write.leader_epoch < state.fence_epoch:
        return _refused(ErrorCode.FENCED_LEADER_EPOCH, behavior)
    return initialize_refusal(state, write.state_epoch, behavior)


def initialize_refusal(state: ShareState | None, state_epoch: int, behavior: ShareBehavior) -> Refusal | None:
    """Return why a state may not begin at a state epoch; None if it may."""
    if behavior.refuses_negative_epochs and state_epoch < 0:
        return Refusal(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
    if state is not None and NO_EPOCH != state_epoch < state.state_epoch:
        return _refused(ErrorCode.FENCED_STATE_EPOCH, behavior)
    return None


def _refused(error: ErrorCode, behavior: ShareBehavior) -> Refusal:
    return Refusal(error, behavior.message_of(error))


def stored_write(state: ShareState, write: StateWrite, behavior: ShareBehavior, *, is_new_leader: bool) -> StateWrite:
    """Return a write as the log has it. Only a new leader, which reads the state first, changes the leader epoch."""
    start_offset, done_count = write.start_offset, write.done_count
    if behavior.keeps_progress:
        if start_offset == state.start_offset:
            done_count = max(done_count, state.done_count)
        elif start_offset < state.start_offset:
            start_offset, done_count = state.start_offset, state.done_count
    return StateWrite(
        write.state_epoch,
        write.leader_epoch if is_new_leader and write.leader_epoch != NO_EPOCH else state.leader_epoch,
        start_offset,
        done_count,
        combined((), write.batches, start_offset),
    )


def written(state: ShareState, write: StateWrite, updates_max: int, now_ms: int) -> ShareState:
    """Return the state after a write as the log has it; one without updates is a new snapshot."""
    after = updated(state, write)
    if state.update_count < updates_max:
        return after
    return after._replace(snapshot_epoch=state.snapshot_epoch + 1, created_ms=now_ms, written_ms=now_ms, update_count=0)


def updated(state: ShareState, write: StateWrite) -> ShareState:
    """Return the state with what an update changes."""
    start_offset = state.start_offset if write.start_offset == NO_OFFSET else write.start_offset
    leader_epoch = state.leader_epoch if write.leader_epoch == NO_EPOCH else write.leader_epoch
    return state._replace(
        start_offset=start_offset,
        leader_epoch=leader_epoch,
        fence_epoch=max(state.fence_epoch, leader_epoch),
        done_count=write.done_count,
        batches=combined(state.batches, write.batches, start_offset),
        update_count=state.update_count + 1,
    )


def initialized(
    state: ShareState | None, state_epoch: int, start_offset: int, updates_max: int, now_ms: int
) -> ShareState:
    """Return the state from a start offset on: a new snapshot without batches."""
    done_count = NO_COUNT if start_offset == NO_OFFSET else 0
    after = ShareState(start_offset, state_epoch, done_count=done_count, created_ms=now_ms, written_ms=now_ms)
    if state is None:
        return after
    return followed(state, after._replace(snapshot_epoch=state.snapshot_epoch + 1), updates_max)


def snapshotted(state: ShareState, updates_max: int, now_ms: int) -> ShareState:
    """Return the same state as a new snapshot, as it has not changed for long."""
    after = state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms)
    return followed(state, after, updates_max)


def followed(state: ShareState, after: ShareState, updates_max: int) -> ShareState:
    """Return the state of a snapshot that follows a state, with what only memory has of the share partition."""
    return after._replace(
        fence_epoch=max(state.fence_epoch, after.leader_epoch),
        update_count=0 if state.update_count >= updates_max else state.update_count,
    )


def combined(stored: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Return batches that do not overlap, in order: new ones count, unless they are older than what is stored.

    Batches that follow each other with the same state become one; what is before the start offset is dropped.
    """
    batches = [batch for batch in (*stored, *new) if batch.last_offset >= start_offset]
    if start_offset != NO_OFFSET:
        batches = [batch._replace(first_offset=max(batch.first_offset, start_offset)) for batch in batches]
    bounds = sorted({b.first_offset for b in batches} | {b.last_offset + 1 for b in batches})
    parts: dict[int, StateBatch] = {}
    index_of = {bound: index for index, bound in enumerate(bounds)}
    for batch in batches:
        for index in range(index_of[batch.first_offset], index_of[batch.last_offset + 1]):
            part = parts.get(index)
            if part is None or _rank(batch) >= _rank(part):
                parts[index] = batch._replace(first_offset=bounds[index], last_offset=bounds[index + 1] - 1)
    found: list[StateBatch] = []
    for _, part in sorted(parts.items()):
        last = found[-1] if found else None
        if last is not None and last.last_offset + 1 == part.first_offset and last[2:] == part[2:]:
            found[-1] = last._replace(last_offset=part.last_offset)
        else:
            found.append(part)
    return tuple(found)


def _rank(batch: StateBatch) -> tuple[int, int]:
    """Return a rank that rises with what happens to a record."""
    return batch.delivery_count, batch.delivery_state
