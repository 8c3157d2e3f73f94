"""ShareGroupHeartbeat: a member of a share group joins, stays or leaves.

Theory of operation. A heartbeat has four steps:

1. The member is created or updated. A change of its subscription, or of the subscribed topics, raises the group epoch.
2. If the group epoch is above the assignment epoch, the assignor computes the targets of all members.
3. The member takes its target and the assignment epoch.
4. Behind the response, subscribed partitions without a state are initialized. That raises the group epoch again, so
   members get these partitions with a later heartbeat.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.epoch_groups.assigning import assign_later
from kproto_server.coordinator.epoch_groups.group import SESSION
from kproto_server.coordinator.epoch_groups.lookup import unknown_member
from kproto_server.coordinator.epoch_groups.requests import JOIN_EPOCH, LEAVE_EPOCH, problem_of_ids
from kproto_server.deferred import at_once
from kproto_server.share_groups.data import ShareMember, shared_topics
from kproto_server.share_groups.group import ShareGroup

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
    from kproto_server.coordinator.epoch_groups.group import Write
    from kproto_server.coordinator.epoch_groups.requests import Client
    from kproto_server.share_groups.data import Assignment, ShareData
    from kproto_server.share_groups.members import ShareMembers


class HeartbeatResult(NamedTuple):
    """What the response has."""

    epoch: int
    interval_ms: int
    write: Write
    """The change, which the log has before the response."""
    assignment: Assignment | None = None
    """None: as in the last response."""


def request_problem(request: ShareGroupHeartbeatRequest) -> str | None:
    """Return why a heartbeat is invalid whatever the group is; None if it is valid."""
    problem = problem_of_ids(request.member_id, request.group_id, None, request.rack_id)
    if problem is not None:
        return problem
    if request.member_epoch == JOIN_EPOCH:
        return None if request.subscribed_topic_names else "SubscribedTopicNames must be set in first request."
    return "MemberEpoch is invalid." if request.member_epoch < LEAVE_EPOCH else None


def heartbeat(
    members: ShareMembers, request: ShareGroupHeartbeatRequest, client: Client, now_ms: int
) -> HeartbeatResult | Refusal:
    """Handle a valid heartbeat to a node that coordinates the group. The log may not have the change yet."""
    if request.member_epoch == LEAVE_EPOCH:
        return _leave(members, request, now_ms)
    settings = members.settings_of(request.group_id)
    group = members.group_for(request.group_id, creates=request.member_epoch == JOIN_EPOCH, now_ms=now_ms)
    if isinstance(group, Refusal):
        return group
    if len(group.members) >= settings.size_max and request.member_id not in group.members:
        message = f"The share group has reached its maximum capacity of {settings.size_max} members."
        return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
    member = _member(group, request)
    if isinstance(member, Refusal):
        return member
    updated = _updated(member, request, client, group.data)
    data = group.data
    if data.members.get(updated.member_id) is not updated:
        data = data._replace(members={**data.members, updated.member_id: updated})
    may_raise = data.assignment_epoch >= data.epoch or members.behavior.raises_pending_epoch
    raises_epoch = updated.topics != member.topics or (may_raise and group.has_unassigned)
    epoch = data.epoch
    data = with_new_epoch(members, group, data, raises_epoch=raises_epoch)
    if data.epoch > data.assignment_epoch and _may_assign(data, settings.assignment_interval_ms, now_ms):
        data = with_targets(members, group, data, now_ms)
    reconciled = _reconciled(members, updated, data, has_new_epoch=data.epoch != epoch)
    if reconciled is not updated:
        updated = reconciled
        data = data._replace(members={**data.members, updated.member_id: updated})
    write = members.write(group, data, now_ms)
    end_ms = now_ms + settings.session_timeout_ms
    members.deadlines.set(members.coordinator, group, updated.member_id, SESSION, end_ms)
    is_full = request.member_epoch == JOIN_EPOCH or request.subscribed_topic_names is not None
    has_changed = is_full or updated.assigned != member.assigned
    return HeartbeatResult(
        updated.epoch, settings.heartbeat_interval_ms, write, updated.assigned if has_changed else None
    )


def _may_assign(data: ShareData, interval_ms: int, now_ms: int) -> bool:
    """Return whether targets may be computed again (KIP-1263)."""
    return not data.assignment_ms or now_ms >= data.assignment_ms + interval_ms


def _reconciled(members: ShareMembers, member: ShareMember, data: ShareData, *, has_new_epoch: bool) -> ShareMember:
    """Return the member with its target, and the assignment epoch."""
    if member.epoch == data.assignment_epoch and not has_new_epoch:
        return member
    subscribed = frozenset(members.topic_ids(member))
    target = data.targets.get(member.member_id, {})
    assigned = {topic_id: partitions for topic_id, partitions in target.items() if topic_id in subscribed}
    if member.epoch != data.assignment_epoch:
        return replace(member, epoch=data.assignment_epoch, previous_epoch=member.epoch, assigned=assigned)
    return member if assigned == member.assigned else replace(member, assigned=assigned)


def _leave(members: ShareMembers, request: ShareGroupHeartbeatRequest, now_ms: int) -> HeartbeatResult | Refusal:
    group = members.group_for(request.group_id, creates=False, now_ms=now_ms)
    if isinstance(group, Refusal):
        return group._replace(message=(group.message or "").replace("Share group", "Group"))
    if request.member_id not in group.data.members:
        return unknown_member(group, request.member_id)
    return HeartbeatResult(LEAVE_EPOCH, 0, remove(members, group, request.member_id, now_ms))


def remove(members: ShareMembers, group: ShareGroup, member_id: str, now_ms: int) -> Write:
    """Remove a member; the group epoch rises."""
    return members.write(group, _without_members(members, group, group.data, {member_id}), now_ms)


def restore_group(members: ShareMembers, group_id: str, data: ShareData, now_ms: int) -> ShareGroup:
    """Register a group with these data, as if its members had left."""
    group = ShareGroup(group_id, now_ms, members.behavior.first_group_epoch)
    if data.members:
        data = _without_members(members, group, data, data.members.keys())
    members.write(group, data, now_ms)
    return group


def _without_members(
    members: ShareMembers, group: ShareGroup, data: ShareData, member_ids: Collection[str]
) -> ShareData:
    """Return the data without members that have left, with the next epoch."""
    left = {name: member for name, member in data.members.items() if name not in member_ids}
    targets = {name: target for name, target in data.targets.items() if name not in member_ids}
    data = with_new_epoch(members, group, data._replace(members=left, targets=targets), raises_epoch=True)
    if not left and members.behavior.assigns_empty_groups:
        data = data._replace(assignment_epoch=data.epoch, assignment_ms=0)
    return data


def _member(group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember | Refusal:
    member, received = group.data.members.get(request.member_id), request.member_epoch
    if member is None:
        if received != JOIN_EPOCH:
            return unknown_member(group, request.member_id)
        return ShareMember(request.member_id)
    if received in (JOIN_EPOCH, member.epoch) or member.epoch > received == member.previous_epoch:
        return member
    is_greater = received > member.epoch
    also = "" if is_greater else f", and it does not match the previous member epoch ({member.previous_epoch})"
    message = (
        f"The share group member has a {'greater' if is_greater else 'smaller'} member epoch ({received}) than the one "
        f"known by the group coordinator ({member.epoch}){also}. The member must abandon all its partitions and rejoin."
    )
    return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _updated(member: ShareMember, request: ShareGroupHeartbeatRequest, client: Client, data: ShareData) -> ShareMember:
    """Return the member with the fields of the request; the same object if none of them is new."""
    names = request.subscribed_topic_names
    topics = member.topics if names is None else shared_topics(names, data)
    rack_id = member.rack_id if request.rack_id is None else request.rack_id
    new = topics, rack_id, client.client_id, client.client_host
    if new == (member.topics, member.rack_id, member.client_id, member.client_host):
        return member
    return replace(member, topics=topics, rack_id=rack_id, client_id=client.client_id, client_host=client.client_host)


def with_new_epoch(members: ShareMembers, group: ShareGroup, data: ShareData, *, raises_epoch: bool) -> ShareData:
    """Return the data with the next group epoch, if subscriptions or subscribed topics have changed."""
    version = members.topics_version
    if not raises_epoch and group.topics_version == version:
        return data
    group.topics_version = version
    metadata_hash = members.metadata_hash(data)
    if not raises_epoch and metadata_hash == data.metadata_hash:
        return data
    return data._replace(epoch=data.epoch + 1, metadata_hash=metadata_hash)


def with_targets(members: ShareMembers, group: ShareGroup, data: ShareData, now_ms: int) -> ShareData:
    """Return the data with new targets. Those of a large group come later (`assigning`)."""

    def finished(present: ShareData, at_ms: int) -> ShareData:
        return present._replace(assignment_epoch=data.epoch, assignment_ms=at_ms)

    targets = members.targets(data)
    if members.is_large(data):
        assign_later(members.coordinator, group, data, targets, finished)
        return data
    return finished(data._replace(targets=at_once(targets)), now_ms)
