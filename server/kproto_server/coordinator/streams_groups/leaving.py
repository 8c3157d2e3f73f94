"""A member leaves: by its own heartbeat, or because a deadline has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.description import not_found
from kproto_server.coordinator.epoch_groups.group import REVOCATION
from kproto_server.coordinator.epoch_groups.lookup import member_of
from kproto_server.coordinator.epoch_groups.requests import LEAVE_STATIC_EPOCH
from kproto_server.coordinator.epoch_groups.writing import write
from kproto_server.coordinator.streams_groups.data import NO_TASKS, StreamsData, replace, with_member
from kproto_server.coordinator.streams_groups.group import StreamsGroup

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.epoch_groups.group import Write


def leave(coordinator: GroupCoordinator, request: StreamsGroupHeartbeatRequest, now_ms: int) -> Write | Refusal:
    """Handle a heartbeat with which a member leaves."""
    group_id, instance_id = request.group_id, request.instance_id
    group = coordinator.group(group_id)
    if not isinstance(group, StreamsGroup):
        message = not_found(group_id) if group is None else f"Group {group_id} is not a streams group."
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, message)
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = request.member_id
    member = member_of(group, group.data.members, request.member_id, instance_id)
    if isinstance(member, Refusal):
        return member
    if instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
        group.drop_deadlines(member.member_id, REVOCATION)  # it was for another epoch
        epochs = dict.fromkeys(member.task_epochs, 0)
        away = replace(member, epoch=LEAVE_STATIC_EPOCH, revoking=NO_TASKS, task_epochs=epochs)
        return write(coordinator, group, group.data._replace(members=with_member(group.data.members, away)), now_ms)
    return remove(coordinator, group, (member.member_id,), now_ms)


def remove(coordinator: GroupCoordinator, group: StreamsGroup, member_ids: Collection[str], now_ms: int) -> Write:
    """Remove members; the group epoch rises."""
    for member_id in member_ids:
        group.drop_deadlines(member_id, REVOCATION)  # the session stays: the log may not be able to write this
    return write(coordinator, group, _without_members(coordinator, group.data, member_ids), now_ms)


def restore_group(coordinator: GroupCoordinator, group_id: str, data: StreamsData, now_ms: int) -> StreamsGroup:
    """Register a group with these data, as if its members had left."""
    group = StreamsGroup(group_id, now_ms, StreamsData())
    if data.members:
        data = _without_members(coordinator, data, data.members.keys())
    write(coordinator, group, data, now_ms)
    return group


def _without_members(coordinator: GroupCoordinator, data: StreamsData, member_ids: Collection[str]) -> StreamsData:
    """Return the data without members that have left, with the next epoch."""
    epoch = data.epoch + 1
    data = data._replace(
        epoch=epoch,
        members={one: member for one, member in data.members.items() if one not in member_ids},
        targets={one: target for one, target in data.targets.items() if one not in member_ids},
    )
    if not data.members and coordinator.behavior.empty_groups_are_assigned:
        data = data._replace(assignment_epoch=epoch, assignment_timestamp_ms=0)
    return data
