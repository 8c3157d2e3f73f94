"""The group record in the log of the group's offsets partition: what of a group survives a restart (LF-14, LF-15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.change_log import NO_BATCH, Change

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior


def write_group(
    coordinator: GroupCoordinator,
    group: Group,
    now_ms: int,
    done: Callable[[int], object],
    assignments: Mapping[str, bytes] | None = None,
) -> None:
    """Append a group as it is now; call ``done`` with the error of the write, 0 once the log has the record.

    ``assignments``: the assignments to write, by member id (GP-32); None: the members' present ones.
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
        batch = group_batch(group, now_ms, coordinator.behavior, compression, assignments)
    coordinator.log.append(partition, Change(group.group_id, done), *batch)


_NOT_COORDINATOR = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR}
_NOT_AVAILABLE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}
_TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE}


def write_error(log_error: int, behavior: CoordinatorBehavior) -> int:
    """Return the error code that members get if the write of their group has failed (GP-33)."""
    error = ErrorCode(log_error)
    if error in _NOT_AVAILABLE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error in _NOT_COORDINATOR:
        return ErrorCode.NOT_COORDINATOR
    if error in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if error is ErrorCode.REQUEST_TIMED_OUT:
        new = behavior.is_new_coordinator
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if new else ErrorCode.REBALANCE_IN_PROGRESS
    return error
