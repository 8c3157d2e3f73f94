"""The target assignment of a group, computed for its epoch when no delay forbids it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.epoch_groups.assigning import SIZE_MAX, assign_later
from kproto_server.coordinator.streams_groups.assignor import TASK_SIZE, MemberSpec, assign
from kproto_server.coordinator.streams_groups.data import NO_TASKS, TaskSets
from kproto_server.coordinator.streams_groups.group import NO_OFFSETS
from kproto_server.coordinator.streams_groups.statuses import INITIAL_DELAY, INTERVAL
from kproto_server.coordinator.streams_groups.version_behavior import behavior_of
from kproto_server.deferred import at_once

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.streams_groups.data import StreamsData
    from kproto_server.coordinator.streams_groups.group import NO_OFFSETS, StreamsGroup
    from kproto_server.coordinator.streams_groups.limits import StreamsLimits
from kproto_server.coordinator.streams_groups.statuses import Status

FIRST_EPOCH = 1
"""The epoch of members before the first assignment."""


class DueTargets(NamedTuple):
    """The data with targets, if these may be computed now."""

    data: StreamsData
    epoch: int
    """The epoch of the targets, to which members may go."""
    statuses: Sequence[Status] = ()
    """Why there are no targets yet."""


def with_due_targets(
    coordinator: GroupCoordinator, group: StreamsGroup, data: StreamsData, limits: StreamsLimits, now_ms: int
) -> DueTargets:
    """Return the data with targets for their epoch, if these are missing and no delay forbids it."""
    is_due = data.epoch > data.assignment_epoch
    if group.delay_timer is not None and (is_due or not behavior_of(coordinator).first_epoch_is_late):
        return DueTargets(data, max(FIRST_EPOCH, data.assignment_epoch), [INITIAL_DELAY])
    if not is_due:
        return DueTargets(data, data.assignment_epoch)
    since_ms, interval_ms = data.assignment_timestamp_ms, limits.assignment_interval_ms
    if since_ms and interval_ms and now_ms - since_ms < interval_ms:
        return DueTargets(data, data.assignment_epoch, [INTERVAL])
    targets = _targets(coordinator, group, data, limits)

    def finished(present: StreamsData, at_ms: int) -> StreamsData:
        return present._replace(assignment_epoch=data.epoch, assignment_timestamp_ms=at_ms)

    if _is_large(group, data, limits):
        assign_later(coordinator, group, data, targets, finished)
        return DueTargets(data, data.assignment_epoch)
    found = {one: _kept(data.targets.get(one), target) for one, target in at_once(targets).items()}
    return DueTargets(finished(data._replace(targets=found), now_ms), data.epoch)


def _is_large(group: StreamsGroup, data: StreamsData, limits: StreamsLimits) -> bool:
    """Return whether an assignment takes so long that it is computed in steps."""
    if group.configured is None:
        return False
    task_count = sum(found.task_count for found in (group.configured.subtopologies or {}).values())
    return TASK_SIZE * task_count * (1 + limits.standby_replicas) + len(data.members) > SIZE_MAX


def _targets(
    coordinator: GroupCoordinator, group: StreamsGroup, data: StreamsData, limits: StreamsLimits
) -> Generator[None, None, dict[str, TaskSets]]:
    """Return the targets of the members, computed in steps: no tasks while the topology is not ready."""
    configured = group.configured
    targets: dict[str, TaskSets] = dict.fromkeys(data.members, NO_TASKS)
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        behavior = behavior_of(coordinator)
        specs = {
            member_id: MemberSpec(
                member.process_id,
                member.assigned if behavior.keeps_present_tasks else data.targets.get(member_id, NO_TASKS),
                group.task_offsets.get(member_id, NO_OFFSETS).offsets if behavior.has_task_offsets else {},
            )
            for member_id, member in data.members.items()
        }
        targets = yield from assign(specs, configured.subtopologies, limits.standby_replicas, behavior)
    return targets


def _kept(before: TaskSets | None, after: TaskSets) -> TaskSets:
    """Return the object of before if it is equal, so that only changes are written."""
    return before if before is not None and before == after else after
