"""A member leaves: by its own heartbeat, or because a deadline has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.consumer_groups.data import replace, with_member
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.coordinator.consumer_groups.limits import limits_of_group
from kproto_server.coordinator.consumer_groups.reconciliation import partition_epochs
from kproto_server.coordinator.consumer_groups.targets import without_members
from kproto_server.coordinator.description import not_found
from kproto_server.coordinator.epoch_groups.group import JOIN, REVOCATION, SYNC
from kproto_server.coordinator.epoch_groups.lookup import member_of
from kproto_server.coordinator.epoch_groups.requests import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from kproto_server.coordinator.epoch_groups.writing import write

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from kproto_server.coordinator.consumer_groups.data import ConsumerMember, GroupData
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.epoch_groups.group import Write


def leave(coordinator: GroupCoordinator, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> Write | Refusal:
    """Handle a heartbeat with which a member leaves."""
    group_id, instance_id = request.group_id, request.instance_id
    group = coordinator.group(group_id)
    if not isinstance(group, ConsumerGroup):
        message = not_found(group_id) if group is None else f"Group {group_id} is not a consumer group."
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, message)
    member = member_of(group, group.data.members, request.member_id, instance_id)
    if isinstance(member, Refusal):
        return member
    if instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
        group.drop_deadlines(member.member_id, REVOCATION)  # it was for another epoch
        away = replace(
            member,
            epoch=LEAVE_STATIC_EPOCH,
            revoking={},
            # The epochs of its assigned partitions start over.
            partition_epochs=partition_epochs({}, member.assigned, {}, JOIN_EPOCH),
        )
        return write(coordinator, group, group.data._replace(members=with_member(group.data.members, away)), now_ms)
    return remove(coordinator, group, (member,), now_ms)


def remove(
    coordinator: GroupCoordinator, group: ConsumerGroup, members: Collection[ConsumerMember], now_ms: int
) -> Write:
    """Remove members. The group becomes a classic one if all others are classic."""
    gone = {member.member_id for member in members}
    others = [one for one in group.data.members.values() if one.member_id not in gone]
    if others and all(one.speaks_classic for one in others):
        from kproto_server.coordinator.consumer_groups.downgrading import downgrade  # only for a migration

        written = downgrade(coordinator, group, others, limits_of_group(coordinator, group.group_id), now_ms)
        if written is not None:
            return written
    for member_id in gone:
        # The session stays: if the log cannot write the removal, the member is still there.
        group.drop_deadlines(member_id, REVOCATION, JOIN, SYNC)
    return write(coordinator, group, without_members(coordinator, group.data, gone), now_ms)


def restore_group(coordinator: GroupCoordinator, group_id: str, data: GroupData, now_ms: int) -> ConsumerGroup:
    """Register a group with these data, as if its members had left."""
    group = ConsumerGroup(group_id, now_ms)
    if data.members:
        data = without_members(coordinator, data, data.members.keys())
    write(coordinator, group, data, now_ms)
    return group
