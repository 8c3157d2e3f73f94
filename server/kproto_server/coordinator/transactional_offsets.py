"""Offsets that producers commit in transactions: pending until the transaction's marker (OC-50 to OC-57).

Theory of operation. The coordinator appends the offsets as a transactional batch, and adds them to the partition's
`PendingOffsets` once the log has them. The marker makes them visible or drops them. A plain commit in between wins,
because its record comes later (OC-56). Plain commits do not look for pending offsets; so the marker compares: if the
visible offset is not the one that was visible before, it was committed later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.change_log import NO_BATCH, Change
from kproto_server.coordinator.commit import MEMBER_EPOCHS, epoch_group_error
from kproto_server.coordinator.groups import KINDS_WITH_MEMBER_EPOCHS, GroupState
from kproto_server.coordinator.pending_offsets import PendingOffset, PendingOffsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kproto.messages.k28_txn_offset_commit import TxnOffsetCommitRequest
    from kproto_server.cluster.topics import Topic
    from kproto_server.coordinator.change_log import Batch
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.offsets import CommitEntries, OffsetAndMetadata
    from kproto_server.coordinator.pending_offsets import OffsetKey
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior
    from kproto_server.log_manager.markers import EndMarker


GROUP_ERRORS_SINCE = 6
"""The first version whose clients know GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH."""


def membership_error(
    group: Group | None,
    request: TxnOffsetCommitRequest,
    api_version: int,
    behavior: CoordinatorBehavior,
    topics: Mapping[str, Topic],
) -> int:
    """Return why a group rejects offsets of a transaction; 0 if it accepts them (OC-52, KIP-447).

    ``topics``: those of the cluster, by name.
    """
    generation, member_id = request.generation_id_or_member_epoch, request.member_id
    instance_id = request.group_instance_id
    if group is not None and group.kind == "share":
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group is None or (group.state is GroupState.EMPTY and not group.members):
        return _error_without_members(group, generation, member_id, api_version, behavior)
    if generation < 0 and member_id == "" and instance_id is None:
        return ErrorCode.NONE
    if group.kind in KINDS_WITH_MEMBER_EPOCHS:
        # ConsumerGroup.validateOffsetCommit has no look at instance ids, and none at the version.
        error = epoch_group_error(group, request, MEMBER_EPOCHS, behavior, topics)
        is_unknown = error == ErrorCode.STALE_MEMBER_EPOCH and api_version < GROUP_ERRORS_SINCE
        return ErrorCode.ILLEGAL_GENERATION if is_unknown else error
    if instance_id is not None and group.static_members.get(instance_id, member_id) != member_id:
        return ErrorCode.FENCED_INSTANCE_ID
    if behavior.requires_known_instance_id and instance_id is not None and instance_id not in group.static_members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member_id not in group.members and (member_id or behavior.requires_known_instance_id):
        return ErrorCode.UNKNOWN_MEMBER_ID
    if generation != group.generation and (generation >= 0 or behavior.requires_known_instance_id):
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.NONE


def _error_without_members(
    group: Group | None, generation: int, member_id: str, api_version: int, behavior: CoordinatorBehavior
) -> ErrorCode:
    if not behavior.requires_known_instance_id:
        # Up to 2.8 each value is checked on its own.
        if member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        current = 0 if group is None else group.generation
        return ErrorCode.ILLEGAL_GENERATION if generation >= 0 and generation != current else ErrorCode.NONE
    if generation < 0:
        return ErrorCode.NONE
    if group is None and behavior.is_new_coordinator:
        knows = api_version >= GROUP_ERRORS_SINCE
        return ErrorCode.GROUP_ID_NOT_FOUND if knows else ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.UNKNOWN_MEMBER_ID


def add_offsets(
    coordinator: GroupCoordinator,
    partition: int,
    group_id: str,
    entries: CommitEntries,
    producer_id: int,
    producer_epoch: int,
    now_ms: int,
    on_settled: Callable[[int], object],
) -> None:
    """Append the offsets of a transaction; they are pending once the log has them.

    ``on_settled``: called with 0, or the error of the write.
    """
    batch = NO_BATCH
    if coordinator.log.keeps:
        from kproto_server.coordinator.offsets_log.batches import offsets_compression
        from kproto_server.coordinator.offsets_log.commits import commit_batch

        compression = offsets_compression(coordinator.settings.current)
        batch = transactional(
            commit_batch(group_id, entries, now_ms, coordinator.behavior, compression), producer_id, producer_epoch
        )
    pending = coordinator.pending_offsets.setdefault(partition, PendingOffsets())
    pending.open_epochs[producer_id] = producer_epoch

    def settle(error: int) -> None:
        if not error:
            visible = coordinator.offsets.of_group(group_id)
            record_offset = pending.next_record_offset()
            pending.epochs[producer_id] = producer_epoch
            for topic, offsets in entries:
                before = visible.get(topic, {})
                for index, stored in offsets:
                    key = group_id, topic, index
                    pending.add(producer_id, key, PendingOffset(record_offset, stored, before.get(index)))
            if coordinator.groups.get(group_id) is None:
                coordinator.groups.create(group_id, now_ms)
        elif producer_id not in pending.epochs:
            # The log may not have the partition as part of the transaction either: the next offsets ask again.
            pending.open_epochs.pop(producer_id, None)
        on_settled(error)

    coordinator.append(partition, Change(group_id, settle), *batch)


def transactional(batch: Batch, producer_id: int, producer_epoch: int) -> Batch:
    """Return a batch as part of a producer's transaction (OC-55)."""
    from kproto.records.batch_header import CHECKED, CHECKED_FROM, TRANSACTIONAL
    from kproto_server.coordinator.offsets_log.batches import with_checksum

    encoded, record_count = batch
    attributes, last_delta, first_ms, max_ms, _, _, sequence, count = CHECKED.unpack_from(encoded, CHECKED_FROM)
    head = CHECKED.pack(
        attributes | TRANSACTIONAL, last_delta, first_ms, max_ms, producer_id, producer_epoch, sequence, count
    )
    return with_checksum(head + encoded[CHECKED_FROM + CHECKED.size :]), record_count


def pending_of(coordinator: GroupCoordinator, group_id: str) -> list[OffsetKey]:
    """Return the keys of a group with a pending offset."""
    pending = coordinator.pending_offsets_of(group_id)
    if pending is None or not pending.has_group(group_id):
        return []
    return list(dict.fromkeys(key for _, key, _ in pending if key[0] == group_id))


def keeps_group(pending: PendingOffsets, group_id: str, behavior: CoordinatorBehavior) -> bool:
    """Return whether an open transaction keeps a group that has no offsets (OC-57).

    Up to 3.9 it does until it ends, even if the pending offsets were deleted (GroupMetadata.hasOffsets).
    """
    return pending.has_group(group_id) if behavior.is_new_coordinator else pending.has_transaction(group_id)


def forget_pending(coordinator: GroupCoordinator, keys: Iterable[OffsetKey]) -> None:
    """Remove pending offsets: their topic or group was deleted, or a client has deleted the offset."""
    for key in keys:
        pending = coordinator.pending_offsets_of(key[0])
        if pending is not None:
            pending.remove_all(key)


def end_offsets(
    coordinator: GroupCoordinator,
    partition: int,
    marker: EndMarker,
    now_ms: int,
    on_settled: Callable[[int], object] = lambda error: None,
) -> None:
    """Append the marker of a producer's transaction to an offsets partition; then its offsets are visible or gone.

    ``on_settled``: called with 0, or the error of the write.
    """
    batch = NO_BATCH
    if coordinator.log.keeps:
        from kproto_server.log_manager.markers import marker_batch

        batch = marker_batch(marker, now_ms, leader_epoch=0), 1
    pending = coordinator.pending_offsets.setdefault(partition, PendingOffsets())
    pending.open_epochs.pop(marker.producer_id, None)
    expiration_ms = coordinator.settings.current.int("producer.id.expiration.ms")

    def settle(error: int) -> None:
        if not error:
            _end_pending(coordinator, pending, marker)
            pending.note_marker(marker.producer_id, marker.producer_epoch, now_ms, expiration_ms)
        on_settled(error)

    coordinator.append(partition, Change("", settle), *batch)


def _end_pending(coordinator: GroupCoordinator, pending: PendingOffsets, marker: EndMarker) -> None:
    """Make the pending offsets of a producer visible, or drop them."""
    of_groups: dict[str, Mapping[str, Mapping[int, OffsetAndMetadata]]] = {}

    def visible(key: OffsetKey) -> OffsetAndMetadata | None:
        group_id, topic, index = key
        offsets = of_groups.get(group_id)
        if offsets is None:
            offsets = of_groups[group_id] = coordinator.offsets.of_group(group_id)
        return offsets.get(topic, {}).get(index)

    commits: dict[str, dict[str, list[tuple[int, OffsetAndMetadata]]]] = {}
    for (group_id, topic, index), stored in pending.end_live(marker.producer_id, visible, commits=marker.commits):
        commits.setdefault(group_id, {}).setdefault(topic, []).append((index, stored))
    for group_id, topics in commits.items():
        coordinator.offsets.apply_commit(group_id, list(topics.items()))
