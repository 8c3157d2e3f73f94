"""The group record in the log of the group's offsets partition: what of a group survives a restart (LF-14, LF-15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.change_log import NO_BATCH, Change

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group


def write_group(
    coordinator: GroupCoordinator,
    group: Group,
    now_ms: int,
    done: Callable[[int], object],
    assignments: Mapping[str, bytes] | None = None,
    replaced: Group | None = None,
) -> None:
    """Append a group as it is now; call ``done`` with the error of the write, 0 once the log has the record.

    Args:
        assignments: the assignments to write, by member id (GP-32); None: the members' present ones.
        replaced: the group of another kind that was in its place.
    """
    partition = coordinator.partition_of(group.group_id)
    if partition is None:
        done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return
    batch = NO_BATCH
    if coordinator.log.keeps:
        from kproto_server.coordinator.offsets_log.batches import offsets_compression
        from kproto_server.coordinator.offsets_log.groups import group_batch

        compression = offsets_compression(coordinator.settings.current)
        removed_keys = () if replaced is None else replaced.record_keys(coordinator.behavior)
        batch = group_batch(group, now_ms, coordinator.behavior, compression, assignments, removed_keys)
    coordinator.append(partition, Change(group.group_id, done), *batch)
