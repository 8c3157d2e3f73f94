"""Write a change of a group to the log before the response that reports it.

Theory of operation. The group gets its next data at once, because heartbeats of other members that arrive while the log
syncs depend on them. Responses wait for the log (`ChangeLog.then`). If a write fails, the group gets back the data on
which the change was decided, and the responses have the error. The log also fails all changes that were appended after
it, because they were decided on data that the log does not have. Earlier changes are not affected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.change_log import NO_BATCH, Change
from kproto_server.coordinator.epoch_groups.group import DataT, Write
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.membership.timers import schedule
from kproto_server.coordinator.membership.unloading import end_group, fail_pending
from kproto_server.coordinator.write_errors import group_write_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.coordinator.change_log import Batch
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.epoch_groups.group import EpochGroup
    from kproto_server.coordinator.groups import Group


NOTHING_WRITTEN = Write()


def write(coordinator: GroupCoordinator, group: EpochGroup[DataT], data: DataT, now_ms: int) -> Write:
    """Give a group its next data, register it if it is new, and append the difference to the log."""
    logged = group.logged
    if data is logged:
        return NOTHING_WRITTEN
    registered = coordinator.groups.get(group.group_id)
    batch = NO_BATCH
    if coordinator.log.keeps:
        removes_classic = registered is not None and registered is not group
        batch = group.change_batch(coordinator, logged, data, now_ms, removes_classic=removes_classic)
    group.apply(data, now_ms)
    group.logged = data
    if coordinator.log.keeps and batch is NO_BATCH:
        # A request was repeated: the log has, or gets, all that it says.
        if group.settled is logged:
            group.settled = data
        return NOTHING_WRITTEN
    settle_registry = _nothing if registered is group else replace_group(coordinator, registered, group)
    return append(coordinator, group, data, batch, settle_registry, now_ms)


def _nothing(log_error: int) -> None:
    """The registry does not change."""


def append(
    coordinator: GroupCoordinator,
    group: EpochGroup[DataT],
    data: DataT,
    batch: Batch,
    settle_registry: Callable[[int], object],
    now_ms: int,
) -> Write:
    """Append a change that is applied already; if the write fails, the group has the data before it again.

    ``settle_registry``: called with the error of the write; undoes what the change has done to the registry.
    """
    result = Write()

    def settle(log_error: int) -> None:
        result.error = log_error
        before = group.data_before(result)
        del group.in_flight[result]
        if log_error:
            group.topics_version = -1
            group.apply(before, now_ms)
            group.logged = before
        else:
            group.settled = data
        settle_registry(log_error)

    group.in_flight[result] = data
    partition = coordinator.partition_of(group.group_id)
    if partition is None:
        settle(0)
    else:
        coordinator.append(partition, Change(group.group_id, settle), *batch)
    return result


def replace_group(coordinator: GroupCoordinator, old: Group | None, new: Group) -> Callable[[int], object]:
    """Register a group in place of another one, or of none; return what has to be called with the error of the write.

    Others may have replaced the new group when its write fails: they rely on it, and fail with it.
    """
    coordinator.groups.add(new)
    coordinator.groups.replaced[new] = coordinator.groups.deleted.get(new.group_id) if old is None else old
    restore = _ended(coordinator, old) if old is not None else None

    def settle(log_error: int) -> None:
        if log_error and _remove(coordinator, new, log_error) and restore is not None:
            restore()
        coordinator.groups.replaced.pop(new, None)

    return settle


def take_out(coordinator: GroupCoordinator, group: Group) -> Callable[[int], object]:
    """Take a group out of the registry, as its deletion is appended; return what has to be called with the error of
    the write.

    A group that has come in its place when the write fails relies on the deletion, and fails with it. One that was not
    written yet does not, and stays.
    """
    restore = _ended(coordinator, group)
    coordinator.groups.remove(group.group_id)
    deleted = coordinator.groups.deleted
    deleted[group.group_id] = group

    def settle(log_error: int) -> None:
        if log_error and _remove(coordinator, group, log_error):
            restore()
        if deleted.get(group.group_id) is group:
            del deleted[group.group_id]

    return settle


def _ended(coordinator: GroupCoordinator, group: Group) -> Callable[[], object]:
    """End a group that is replaced or deleted; return what restores it, with its timers."""
    state, phase, timer = group.state, group.phase, group.session_timer
    session_check = None if timer is None or timer.action is None else (timer.due_ms, timer.action)
    end_group(group)

    def restore() -> None:
        if group.state is GroupState.DEAD:  # otherwise it has the state of older data
            group.state = state
        coordinator.groups.add(group)
        group.phase = phase
        if session_check is not None:
            group.session_timer = coordinator.clock.call_at(*session_check, in_background=True)
        schedule(coordinator, group)

    return restore


def _remove(coordinator: GroupCoordinator, group: Group, log_error: int) -> bool:
    """Undo a group that the log does not have, or a deletion; return whether it was not undone before.

    Removes the registered group if it is this one, or has replaced it.
    """
    groups = coordinator.groups
    registered, deleted = groups.get(group.group_id), groups.deleted.get(group.group_id)
    one = deleted if registered is None else registered
    relies_on_deletion = one is deleted
    while one is not None and one is not group:
        one = groups.replaced.get(one)
        relies_on_deletion = relies_on_deletion or one is deleted
    if one is None:
        return False
    if relies_on_deletion:
        del groups.deleted[group.group_id]
    if registered is None:
        return True
    if registered.kind == "classic":
        fail_pending(registered, ErrorCode(group_write_error(log_error, coordinator.behavior)))
    groups.remove(registered.group_id)
    end_group(registered)
    return True
