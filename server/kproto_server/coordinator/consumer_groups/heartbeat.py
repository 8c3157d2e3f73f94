"""ConsumerGroupHeartbeat: a member joins or stays (GP-52 to GP-54).

Theory of operation. A heartbeat has three steps, and each may change the group's data:

1. The member is created or updated. A change of its subscription, or of the subscribed topics, raises the group epoch.
2. If the group epoch is above the assignment epoch, the assignor computes the targets of all members.
3. The member takes its next step towards its target (`reconciliation`).

The response has the member's epoch, and its assignment if that has changed or the member has sent all fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.consumer_groups.data import (
    NO_PARTITIONS,
    Assignment,
    ConsumerMember,
    GroupData,
    MemberState,
    replace,
    shared_topics,
    topics_of,
    with_member,
)
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.coordinator.consumer_groups.leaving import leave
from kproto_server.coordinator.consumer_groups.limits import is_full, limits_of_group
from kproto_server.coordinator.consumer_groups.reconciliation import Step, reconcile
from kproto_server.coordinator.consumer_groups.targets import preferred_assignor, with_due_targets, with_new_epoch
from kproto_server.coordinator.consumer_groups.timers import DEADLINES
from kproto_server.coordinator.epoch_groups.group import SESSION
from kproto_server.coordinator.epoch_groups.lookup import member_of, replaced, unreleased
from kproto_server.coordinator.epoch_groups.requests import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH, UNCHANGED
from kproto_server.coordinator.epoch_groups.writing import write

if TYPE_CHECKING:
    from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from kproto_server.coordinator.consumer_groups.limits import ConsumerLimits
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.epoch_groups.group import Write
    from kproto_server.coordinator.epoch_groups.requests import Client


class HeartbeatResult(NamedTuple):
    """What the response has."""

    member_id: str
    epoch: int
    interval_ms: int
    write: Write
    """The change, which the log has before the response."""
    assignment: Assignment | None = None
    """None: as in the last response."""


def heartbeat(
    coordinator: GroupCoordinator, request: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int
) -> HeartbeatResult | Refusal:
    """Handle a valid heartbeat (`request_error`) to a node that coordinates the group.

    The log may not have the change yet.
    """
    limits = limits_of_group(coordinator, request.group_id)
    if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        left = leave(coordinator, request, now_ms)
        if isinstance(left, Refusal):
            return left
        return HeartbeatResult(request.member_id, request.member_epoch, 0, left)
    group = _group(coordinator, request, limits, now_ms)
    if isinstance(group, Refusal):
        return group
    if is_full(coordinator, group, limits, request.member_id, request.instance_id):
        message = f"The consumer group has reached its maximum capacity of {limits.size_max} members."
        return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
    found = _member(coordinator, group, request)
    if isinstance(found, Refusal):
        return found
    member, data = found
    updated = _updated(member, request, client, data)
    decided = _decided(coordinator, group, data, member, updated, request, client, limits, now_ms)
    if isinstance(decided, Refusal):
        return decided
    data, updated = decided
    written = write(coordinator, group, data, now_ms)
    member_id = updated.member_id
    DEADLINES.set(coordinator, group, member_id, SESSION, now_ms + limits.session_timeout_ms)
    DEADLINES.note_reconciliation(coordinator, group, member, updated, now_ms)
    has_all_fields = request.member_epoch == JOIN_EPOCH or (
        request.rebalance_timeout_ms != UNCHANGED
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
    is_new_assignment = has_all_fields or updated.assigned != member.assigned
    assignment = updated.assigned if is_new_assignment else None
    return HeartbeatResult(member_id, updated.epoch, limits.heartbeat_interval_ms, written, assignment)


def _group(
    coordinator: GroupCoordinator, request: ConsumerGroupHeartbeatRequest, limits: ConsumerLimits, now_ms: int
) -> ConsumerGroup | Refusal:
    """Return the group; a new one, which is not registered yet, if a member joins where no consumer group is."""
    group_id, joins = request.group_id, request.member_epoch == JOIN_EPOCH
    group = coordinator.group(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if group is None or (joins and group.kind == "classic" and group.is_empty):
        if not joins:
            return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        return ConsumerGroup(group_id, now_ms, ConsumerGroup.new_data(coordinator.behavior.first_group_epoch))
    if joins and group.kind == "classic":
        from kproto_server.coordinator.consumer_groups.upgrading import upgrade  # only for a migration

        return upgrade(coordinator, group, limits, now_ms)
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def _member(
    coordinator: GroupCoordinator, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
) -> tuple[ConsumerMember, GroupData] | Refusal:
    """Return the member and the data of its group. A member that returns as a static one has replaced the old one."""
    data, joins = group.data, request.member_epoch == JOIN_EPOCH
    if not joins:
        found = member_of(group, data.members, request.member_id, request.instance_id)
        return found if isinstance(found, Refusal) else _epoch_error(found, request) or (found, data)
    member_id = request.member_id or coordinator.new_uuid()
    if request.instance_id is not None:
        return _static_member(group, member_id, request.instance_id)
    member = data.members.get(member_id)
    if member is None:
        return ConsumerMember(member_id), data
    if coordinator.behavior.members_may_join_again:
        return member, data
    return _epoch_error(member, request) or (member, data)


def _static_member(
    group: ConsumerGroup, member_id: str, instance_id: str
) -> tuple[ConsumerMember, GroupData] | Refusal:
    """Return a static member that joins. A member that has left takes its new member id."""
    data = group.data
    present_id = group.static_members.get(instance_id)
    if present_id is None:
        return data.members.get(member_id) or ConsumerMember(member_id), data
    present = data.members[present_id]
    if not present.speaks_classic and present.epoch != LEAVE_STATIC_EPOCH:
        return unreleased(member_id, instance_id, present_id)
    return with_replaced_member(data, present, member_id)


def with_replaced_member(data: GroupData, old: ConsumerMember, member_id: str) -> tuple[ConsumerMember, GroupData]:
    """Return a static member with a new id and epoch 0, and the data with it in place of the old one."""
    member = replace(old, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    target = data.targets.get(old.member_id, {})
    return member, data._replace(
        members=replaced(data.members, old.member_id, member_id, member),
        targets=replaced(data.targets, old.member_id, member_id, target),
    )


def _epoch_error(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    """Refuse an epoch that is not the member's. The previous one is accepted if the last response may be lost."""
    received = request.member_epoch
    if received == member.epoch:
        return None
    comparison = "greater" if received > member.epoch else "smaller"
    if comparison == "smaller" and received == member.previous_epoch and _is_part(request, member.assigned):
        return None
    message = (
        f"The consumer group member has a {comparison} member epoch ({received}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _is_part(request: ConsumerGroupHeartbeatRequest, assigned: Assignment) -> bool:
    if request.topic_partitions is None:
        return False
    return all(
        one.topic_id in assigned and assigned[one.topic_id].issuperset(one.partitions)
        for one in request.topic_partitions
    )


def _updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client, data: GroupData
) -> ConsumerMember:
    """Return the member with the fields of the request; the same object if none of them is new."""
    names = request.subscribed_topic_names
    new = (
        member.group_instance_id if request.instance_id is None else request.instance_id,
        member.rack_id if request.rack_id is None else request.rack_id,
        member.rebalance_timeout_ms if request.rebalance_timeout_ms == UNCHANGED else request.rebalance_timeout_ms,
        member.assignor if request.server_assignor is None else request.server_assignor,
        member.topics if names is None else shared_topics(names, data.members),
        member.regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
        client.client_id,
        client.client_host,
        False,
    )
    present = (
        member.group_instance_id,
        member.rack_id,
        member.rebalance_timeout_ms,
        member.assignor,
        member.topics,
        member.regex,
        member.client_id,
        member.client_host,
        member.speaks_classic,
    )
    if new == present:
        return member
    return replace(
        member,
        group_instance_id=new[0],
        rack_id=new[1],
        rebalance_timeout_ms=new[2],
        assignor=new[3],
        topics=new[4],
        regex=new[5],
        client_id=client.client_id,
        client_host=client.client_host,
        speaks_classic=False,
        session_timeout_ms=0,
        protocols=(),
    )


def _decided(
    coordinator: GroupCoordinator,
    group: ConsumerGroup,
    data: GroupData,
    member: ConsumerMember,
    updated: ConsumerMember,
    request: ConsumerGroupHeartbeatRequest,
    client: Client,
    limits: ConsumerLimits,
    now_ms: int,
) -> tuple[GroupData, ConsumerMember] | Refusal:
    """Return the next data of the group, and the member in them."""
    if data.members.get(updated.member_id) is not updated:
        data = data._replace(members=with_member(data.members, updated))
    has_new_topics = updated.topics != member.topics
    has_new_regex = (updated.regex or "") != (member.regex or "")
    raises_epoch = has_new_topics
    if coordinator.behavior.assignor_raises_epoch and updated.assignor != member.assignor:
        before, after = preferred_assignor(group.data.members.values()), preferred_assignor(data.members.values())
        raises_epoch = raises_epoch or (before or limits.assignors[0]) != (after or limits.assignors[0])
    if member.regex or updated.regex or group.has_expressions:
        from kproto_server.coordinator.consumer_groups.regular_expressions import update  # not all groups have one

        resolved = update(coordinator, group, data, member, updated, client, limits.regex_refresh_ms, now_ms)
        if isinstance(resolved, Refusal):
            return resolved
        data, changed = resolved
        raises_epoch = raises_epoch or changed
    data = with_new_epoch(coordinator, group, data, now_ms, raises_epoch=raises_epoch)
    data = with_due_targets(coordinator, group, data, limits, now_ms)
    if updated.state is MemberState.UNKNOWN and (request.topic_partitions is None or request.topic_partitions):
        message = (
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
        )
        return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)
    return reconciled(coordinator, group, data, updated, _owned(request), has_new_topics or has_new_regex)


def _owned(request: ConsumerGroupHeartbeatRequest) -> Assignment | None:
    """Return the partitions that the member says it owns."""
    if request.topic_partitions is None:
        return None
    owned: Assignment = {}
    for one in request.topic_partitions:
        owned[one.topic_id] = owned.get(one.topic_id, NO_PARTITIONS) | frozenset(one.partitions)
    return owned


def reconciled(
    coordinator: GroupCoordinator,
    group: ConsumerGroup,
    data: GroupData,
    member: ConsumerMember,
    owned: Assignment | None,
    has_new_subscription: bool,
) -> tuple[GroupData, ConsumerMember]:
    """Return the data after the next step of a member, and the member."""
    if not has_new_subscription and member.is_reconciled_to(data.assignment_epoch):
        return data, member
    topic_ids: frozenset[bytes] | None = None
    if coordinator.behavior.members_give_up_unsubscribed_topics:
        topics = [coordinator.topics.get(name) for name in topics_of(member, data)]
        topic_ids = frozenset([topic.topic_id for topic in topics if topic is not None])
    step = Step(
        _target(group, data, member),
        data.assignment_epoch,
        owned,
        group.owners,
        topic_ids,
        has_new_subscription,
        coordinator.behavior.members_keep_revoked_partitions,
    )
    moved = reconcile(member, step)
    if moved is not member:
        data = data._replace(members=with_member(data.members, moved))
    return data, moved


def _target(group: ConsumerGroup, data: GroupData, member: ConsumerMember) -> Assignment:
    """Return the target of a member. A member that was dynamic has none until the next assignment.

    As ConsumerGroup.targetAssignment(memberId, instanceId), which looks for the present member of the instance id.
    """
    is_new_static = member.group_instance_id is not None and member.group_instance_id not in group.static_members
    if is_new_static and data.assignment_epoch == group.data.assignment_epoch:
        return {}
    return data.targets.get(member.member_id, {})
