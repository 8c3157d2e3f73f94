"""The target assignment of a group, computed for its epoch when no delay forbids it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.streams_groups.assignor import MemberSpec, assign
from kproto_server.coordinator.streams_groups.data import NO_TASKS, TaskSets
from kproto_server.coordinator.streams_groups.group import NO_OFFSETS
from kproto_server.coordinator.streams_groups.statuses import INITIAL_DELAY, INTERVAL
from kproto_server.coordinator.streams_groups.version_behavior import behavior_of

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    return DueTargets(with_targets(coordinator, group, data, limits, now_ms), data.epoch)


def with_targets(
    coordinator: GroupCoordinator, group: StreamsGroup, data: StreamsData, limits: StreamsLimits, now_ms: int
) -> StreamsData:
    """Return the data with targets for their epoch: no tasks while the topology is not ready."""
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
        targets = assign(specs, configured.subtopologies, limits.standby_replicas, behavior)
    return data._replace(
        targets={one: _kept(data.targets.get(one), target) for one, target in targets.items()},
        assignment_epoch=data.epoch,
        assignment_timestamp_ms=now_ms,
    )


def _kept(before: TaskSets | None, after: TaskSets) -> TaskSets:
    """Return the object of before if it is equal, so that only changes are written."""
    return before if before is not None and before == after else after
