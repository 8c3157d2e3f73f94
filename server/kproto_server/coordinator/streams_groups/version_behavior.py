"""What Kafka releases do differently with streams groups."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator


class StreamsBehavior(VersionBehavior):
    """The switches of streams groups."""

    @cached_property
    def has_static_members(self) -> bool:
        """Whether members may have instance ids: from 4.4 on (measured on 4.2.2, 4.3.1 and 4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def has_task_offsets(self) -> bool:
        """Whether members may report offsets of their state stores, which make them candidates for tasks; the response
        then says how often, and how far behind a member may be (measured on 4.3.1 and 4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def first_epoch_is_late(self) -> bool:
        """Whether the first epoch of a group is 0, the next one 2, and 1 that of members before the first assignment:
        in 4.2. Later releases begin with 1 (measured on 4.2.2 and 4.3.1)."""
        return not self.at_least(4, 3)

    @cached_property
    def full_group_keeps_members(self) -> bool:
        """Whether a member of a full group may join again: from 4.4 on (measured on 4.3.1 and 4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def join_removes_endpoint(self) -> bool:
        """Whether a member that joins again without an endpoint has none any more: from 4.4 on (measured on 4.3.1 and
        4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def endpoint_changes_raise_epoch(self) -> bool:
        """Whether a new endpoint raises the endpoint epoch; before 4.4 it rises when the member joins, or gets other
        tasks (measured on 4.3.1 and 4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def counts_partitions_of_endpoints(self) -> bool:
        """Whether the partitions of a topic with fewer partitions than tasks are the first ones of these tasks: in 4.3
        (measured on 4.2.2, 4.3.1 and 4.4.0)."""
        return self.at_least(4, 3) and not self.at_least(4, 4)

    @cached_property
    def keeps_present_tasks(self) -> bool:
        """Whether the assignor lets members keep the tasks that they have, from 4.4 on, or those of their targets
        (measured on 4.3.1 and 4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def computes_processes(self) -> bool:
        """Whether the assignor collects processes by ``computeIfAbsent``: from 4.4 on. It decides their order
        (StickyTaskAssignor of 4.3.1 and 4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def keeps_first_standby(self) -> bool:
        """Whether a standby task goes to no former holder if the first one has the task in another role: in 4.3
        (StickyTaskAssignor of 4.2.2, 4.3.1 and 4.4.0)."""
        return self.at_least(4, 3) and not self.at_least(4, 4)

    @cached_property
    def changes_roles_in_place(self) -> bool:
        """Whether a member may go from one role of a task to another without giving up the task: from 4.4 on
        (CurrentAssignmentBuilder of 4.3.1 and 4.4.0)."""
        return self.at_least(4, 4)


def behavior_of(coordinator: GroupCoordinator) -> StreamsBehavior:
    """Return the behavior of the coordinator's release."""
    return coordinator.settings.current.kafka_version.behavior(StreamsBehavior)
