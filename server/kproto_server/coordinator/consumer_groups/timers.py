"""The deadlines of a consumer group's members (`epoch_groups.deadlines`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.consumer_groups.data import MemberState
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.coordinator.consumer_groups.leaving import remove
from kproto_server.coordinator.consumer_groups.limits import limits_of_group
from kproto_server.coordinator.epoch_groups.deadlines import Deadlines

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group


def _remove(coordinator: GroupCoordinator, group: ConsumerGroup, member_id: str, now_ms: int) -> None:
    remove(coordinator, group, (group.data.members[member_id],), now_ms)


DEADLINES: Deadlines[ConsumerGroup] = Deadlines(_remove, MemberState.UNREVOKED_PARTITIONS)


def on_group_loaded(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Begin the sessions of a loaded group."""
    if not isinstance(group, ConsumerGroup):
        return
    DEADLINES.begin(coordinator, group, limits_of_group(coordinator, group.group_id).session_timeout_ms, now_ms)
