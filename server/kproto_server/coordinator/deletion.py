"""Deletions that clients request: OffsetDelete, DeleteGroups, and the offsets of deleted topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.change_log import NO_BATCH, Change
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.transactional_offsets import forget_pending, keeps_group, pending_of
from kproto_server.coordinator.write_errors import commit_write_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.offsets import DeletionEntries
    from kproto_server.coordinator.pending_offsets import OffsetKey


def offset_delete_error(group: Group | None) -> int:
    """Return the error of an OffsetDelete for the whole group; 0 if each topic decides (EX-62)."""
    if group is None or group.state is GroupState.DEAD or group.kind == "share":
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.is_empty or group.uses_consumer_protocol or group.kind == "streams":
        return 0
    return ErrorCode.NON_EMPTY_GROUP


def group_delete_error(group: Group | None) -> int:
    """Return why a group may not be deleted; 0 if it may (EX-61)."""
    if group is None or group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return 0 if group.is_empty else ErrorCode.NON_EMPTY_GROUP


def delete_group(coordinator: GroupCoordinator, group_id: str, now_ms: int, done: Callable[[int], object]) -> None:
    """Delete a group and its offsets; call ``done`` with the error of the write, 0 once the group is deleted."""
    deleted = [(topic, list(partitions)) for topic, partitions in _known(coordinator, group_id).items()]
    _delete(coordinator, group_id, deleted, pending_of(coordinator, group_id), now_ms, done, removes_group=True)


def delete_offsets(
    coordinator: GroupCoordinator,
    group_id: str,
    topics: Mapping[str, Iterable[int]],
    now_ms: int,
    done: Callable[[int], object],
) -> None:
    """Delete offsets of a group, skipping those that do not exist; ``done`` as in `delete_group`.

    Up to 3.9 an empty group that has no offsets left is deleted too, even if no offset was deleted, unless a
    transaction with offsets of the group is open. The ids of its pending members are then unknown.
    """
    known = _known(coordinator, group_id)
    pending = [(group_id, topic, one) for topic, found in topics.items() for one in found]
    deleted: list[tuple[str, list[int]]] = []
    for topic, partitions in topics.items():
        existing = [partition for partition in dict.fromkeys(partitions) if partition in known.get(topic, {})]
        if existing:
            deleted.append((topic, existing))
    leaves_nothing = sum(len(partitions) for _, partitions in deleted) == sum(map(len, known.values()))
    removes_group = leaves_nothing and _ends_without_offsets(coordinator, group_id)
    if not deleted and not removes_group:
        # Up to 3.9 pending offsets have no tombstones: after a restart, they are there again.
        forget_pending(coordinator, pending)
        done(0)
        return
    _delete(coordinator, group_id, deleted, pending, now_ms, done, removes_group=removes_group)


def _known(coordinator: GroupCoordinator, group_id: str) -> dict[str, dict[int, None]]:
    """Return the partitions with an offset of a group, including commits that the log has not settled yet.

    In the new coordinator those with only a pending offset get a tombstone, too.
    """
    known = {topic: dict.fromkeys(stored) for topic, stored in coordinator.offsets.of_group(group_id).items()}
    if coordinator.behavior.is_new_coordinator:
        for _, topic, partition in pending_of(coordinator, group_id):
            known.setdefault(topic, {})[partition] = None
    for change in coordinator.log.in_flight():
        if change.group_id == group_id:
            for topic, partitions in change.commits:
                known.setdefault(topic, {}).update((partition, None) for partition, _ in partitions)
    return known


def _ends_without_offsets(coordinator: GroupCoordinator, group_id: str) -> bool:
    group = coordinator.group(group_id)
    if group is None or not group.is_empty or not coordinator.behavior.deleting_last_offset_removes_group:
        return False
    pending = coordinator.pending_offsets_of(group_id)
    return pending is None or not keeps_group(pending, group_id, coordinator.behavior)


def forget_topics(coordinator: GroupCoordinator, names: Iterable[str], now_ms: int) -> None:
    """Delete the offsets of deleted topics from each group, whatever its state (EX-60).

    Up to 3.9 each Empty group without offsets goes, too, whichever topics it had (GroupMetadataManager's
    cleanupGroupMetadata; measured on 3.9.2). A group whose tombstones can't be written keeps its offsets, as the tables
    never differ from the log.
    """
    gone = set(names)
    group_ids = dict.fromkeys(coordinator.offsets.groups_with(gone))
    for pending in coordinator.pending_offsets.values():
        group_ids.update((key[0], None) for _, key, _ in pending if key[1] in gone)
    for change in coordinator.log.in_flight():
        if any(topic in gone for topic, _ in change.commits):
            group_ids[change.group_id] = None
    if coordinator.behavior.deleting_last_offset_removes_group:
        has_offsets = coordinator.offsets.has
        group_ids.update(
            (one.group_id, None) for one in coordinator.groups if one.is_empty and not has_offsets(one.group_id)
        )
    for group_id in group_ids:
        deleted = {topic: found for topic, found in _known(coordinator, group_id).items() if topic in gone}
        for _, topic, partition in pending_of(coordinator, group_id):
            if topic in gone:
                deleted.setdefault(topic, {})[partition] = None
        delete_offsets(coordinator, group_id, deleted, now_ms, lambda log_error: None)


def _delete(
    coordinator: GroupCoordinator,
    group_id: str,
    topics: DeletionEntries,
    pending: Collection[OffsetKey],
    now_ms: int,
    done: Callable[[int], object],
    *,
    removes_group: bool,
) -> None:
    """Append the tombstones, and apply the deletion once the log has them; ``pending``: pending offsets to remove."""
    partition = coordinator.partition_of(group_id)
    assert partition is not None, "only the coordinator of a group deletes it"
    behavior = coordinator.behavior

    def settle(log_error: int) -> None:
        if log_error:
            done(commit_write_error(log_error, behavior))
            return
        forget_pending(coordinator, pending)
        existed = coordinator.group(group_id) is not None
        coordinator.offsets.apply_deletion(group_id, topics)
        if removes_group:
            if (of_partition := coordinator.pending_offsets_of(group_id)) is not None:
                of_partition.forget_group(group_id)
        elif existed and coordinator.group(group_id) is None:
            # The group existed by its offsets: register it until the next expiration run removes it (EX-33).
            coordinator.groups.create(group_id, now_ms)
        done(0)

    group = coordinator.groups.get(group_id) if removes_group else None
    append_tombstones(coordinator, partition, group_id, topics, now_ms, settle, group, removes_group=removes_group)


def append_tombstones(
    coordinator: GroupCoordinator,
    partition: int,
    group_id: str,
    topics: DeletionEntries,
    now_ms: int,
    settle: Callable[[int], object],
    group: Group | None,
    *,
    removes_group: bool,
) -> None:
    """Append the tombstones of a group's offsets, and of the group itself if it is removed.

    ``group``: a registered group that goes with them. It goes at once, since members that join before the log has the
    tombstones are in a new group, whose records come after them; if the write fails, it is there again.
    """
    batch = NO_BATCH
    if coordinator.log.keeps:
        from kproto_server.coordinator.offsets_log.batches import offsets_compression
        from kproto_server.coordinator.offsets_log.deletions import deletion_batch

        compression = offsets_compression(coordinator.settings.current)
        keys = None if group is None else group.record_keys(coordinator.behavior)
        batch = deletion_batch(
            group_id, topics, removes_group, now_ms, coordinator.behavior, compression, group_keys=keys
        )
    if group is None:
        coordinator.append(partition, Change(group_id, settle), *batch)
        return
    from kproto_server.coordinator.epoch_groups.writing import take_out  # with all of `membership`

    settle_registry = take_out(coordinator, group)

    def settle_both(log_error: int) -> None:
        settle_registry(log_error)
        settle(log_error)

    coordinator.append(partition, Change(group_id, settle_both), *batch)
