"""Classic members of a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup during a migration (GP-57).

Theory of operation. A JoinGroup is a heartbeat of the member: it brings the subscription and what the member owns, and
the response comes at once, with the member's epoch as the generation. The SyncGroup that follows gets the assignment.
Heartbeat says REBALANCE_IN_PROGRESS while the member has a step to take, which it takes with its next JoinGroup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.records.consumer_protocol import PROTOCOL_TYPE
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.consumer_groups.consumer_protocol import assignment_bytes, subscription_of
from kproto_server.coordinator.consumer_groups.data import ConsumerMember, MemberState, replace, with_member
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.coordinator.consumer_groups.heartbeat import reconciled, with_replaced_member
from kproto_server.coordinator.consumer_groups.leaving import remove
from kproto_server.coordinator.consumer_groups.limits import is_full, limits_of_group
from kproto_server.coordinator.consumer_groups.targets import with_due_targets, with_new_epoch
from kproto_server.coordinator.consumer_groups.timers import DEADLINES
from kproto_server.coordinator.epoch_groups.group import JOIN, REVOCATION, SESSION, SYNC
from kproto_server.coordinator.epoch_groups.lookup import member_of, static_member
from kproto_server.coordinator.epoch_groups.writing import write
from kproto_server.coordinator.membership.responses import JoinResult, PendingResponse, SyncResult, rejected_join
from kproto_server.coordinator.write_errors import group_write_error
from kproto_server.deferred import NO_RESPONSE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kproto_server.coordinator.consumer_groups.consumer_protocol import Subscription
    from kproto_server.coordinator.consumer_groups.data import GroupData
    from kproto_server.coordinator.consumer_groups.limits import ConsumerLimits
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group, Protocols
    from kproto_server.coordinator.membership.requests import JoinRequest, SyncRequest
    from kproto_server.deferred import NoResponse

    Leaving = tuple[str, str | None]
    """Member id and group instance id."""


def join(
    coordinator: GroupCoordinator,
    group: Group,
    request: JoinRequest,
    now_ms: int,
    response: PendingResponse[JoinResult],
) -> None:
    """Handle a JoinGroup to a consumer group with members."""
    assert isinstance(group, ConsumerGroup), "of this kind"
    member_id = request.member_id or coordinator.new_uuid()
    limits = limits_of_group(coordinator, group.group_id)
    if not (limits.upgrades or limits.downgrades) and coordinator.behavior.disabled_migration_refuses_joins:
        response.complete(rejected_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""))
        return
    if is_full(coordinator, group, limits, member_id, request.group_instance_id):
        response.complete(rejected_join(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
        return
    if not _supports(group, request.protocol_type, request.protocols):
        response.complete(rejected_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""))
        return
    if request.requires_known_member_id and not request.member_id and request.group_instance_id is None:
        response.complete(rejected_join(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        return
    found = _member(group, request, member_id)
    if isinstance(found, Refusal):
        response.complete(rejected_join(found.error, ""))
        return
    member, data = found
    subscription = subscription_of(coordinator, request.protocols[0][1])
    if subscription is None:
        response.complete(rejected_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""))
        return
    updated = _updated(member, request, subscription)
    data = data._replace(members=with_member(data.members, updated))
    if member.regex:
        from kproto_server.coordinator.consumer_groups.regular_expressions import without_unused  # few members have one

        data = without_unused(data, member.regex)
    has_new_topics, has_new_regex = updated.topics != member.topics, bool(member.regex)
    raises_epoch = has_new_topics or (has_new_regex and coordinator.behavior.removed_regex_raises_epoch)
    data = with_new_epoch(coordinator, group, data, now_ms, raises_epoch=raises_epoch)
    downgrades = _downgrades(coordinator, group, request, data, limits)
    before, precedes = data, coordinator.behavior.downgrade_precedes_assignment
    if not (downgrades and precedes):
        data = with_due_targets(coordinator, group, data, limits, now_ms)
    if not (downgrades and precedes) or data.epoch <= data.assignment_epoch:
        data, updated = reconciled(
            coordinator, group, data, updated, subscription.owned, has_new_topics or has_new_regex
        )
    if downgrades:
        from kproto_server.coordinator.consumer_groups.downgrading import downgrade_joined  # only for a migration

        written = downgrade_joined(coordinator, group, data if precedes else before, now_ms)
    else:
        written = write(coordinator, group, data, now_ms)
        member_id = updated.member_id
        group.drop_deadlines(member_id, JOIN)
        if updated.epoch != member.epoch:
            group.drop_deadlines(member_id, REVOCATION)  # a restart has begun it
        DEADLINES.set(coordinator, group, member_id, SESSION, now_ms + request.session_timeout_ms)
        DEADLINES.set(coordinator, group, member_id, SYNC, now_ms + request.rebalance_timeout_ms)
    result = JoinResult(0, updated.member_id, updated.epoch, PROTOCOL_TYPE, request.protocols[0][0])

    def settled() -> NoResponse:
        error = group_write_error(written.error, coordinator.behavior) if written.error else 0
        response.complete(rejected_join(ErrorCode(error), "") if error else result)
        return NO_RESPONSE

    coordinator.log.then(settled)


def _downgrades(
    coordinator: GroupCoordinator, group: ConsumerGroup, request: JoinRequest, data: GroupData, limits: ConsumerLimits
) -> bool:
    """Return whether the member replaces the last one of KIP-848, so that the group becomes a classic one."""
    replaced_id = group.static_members.get(request.group_instance_id or "")
    if replaced_id is None or group.data.members[replaced_id].speaks_classic:
        return False
    from kproto_server.coordinator.consumer_groups.downgrading import may_downgrade  # only for a migration

    return may_downgrade(coordinator, list(data.members.values()), limits)


def _supports(group: ConsumerGroup, protocol_type: str, protocols: Protocols) -> bool:
    """Return whether all classic members of the group support one of the protocols."""
    if protocol_type != PROTOCOL_TYPE or not protocols:
        return False
    classic = [member for member in group.data.members.values() if member.speaks_classic]
    return any(all(name in dict(member.protocols) for member in classic) for name, _ in protocols)


def _member(group: ConsumerGroup, request: JoinRequest, member_id: str) -> tuple[ConsumerMember, GroupData] | Refusal:
    data, instance_id = group.data, request.group_instance_id
    if instance_id is None:
        return data.members.get(member_id) or ConsumerMember(member_id), data
    if request.member_id:
        found = static_member(group, group.data.members, member_id, instance_id)
        return found if isinstance(found, Refusal) else (found, data)
    present_id = group.static_members.get(instance_id)
    if present_id is None:
        return ConsumerMember(member_id), data
    return with_replaced_member(data, data.members[present_id], member_id)


def _updated(member: ConsumerMember, request: JoinRequest, subscription: Subscription) -> ConsumerMember:
    return replace(
        member,
        group_instance_id=request.group_instance_id or member.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=subscription.topics,
        regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        session_timeout_ms=request.session_timeout_ms,
        protocols=request.protocols,
        speaks_classic=True,
    )


def sync(
    coordinator: GroupCoordinator,
    group: Group,
    request: SyncRequest,
    now_ms: int,
    response: PendingResponse[SyncResult],
) -> None:
    """Handle a SyncGroup to a consumer group: the response has the member's assignment."""
    assert isinstance(group, ConsumerGroup), "of this kind"
    member = _classic_member(group, request.member_id, request.group_instance_id)
    if isinstance(member, Refusal):
        response.complete(SyncResult(member.error))
        return
    error = _sync_error(member, request)
    if (
        not error
        and _rebalance_epoch(coordinator, group) > member.epoch
        and member.state is not MemberState.UNREVOKED_PARTITIONS
    ):
        _expect_join(coordinator, group, member, now_ms)
        error = ErrorCode.REBALANCE_IN_PROGRESS
    if error:
        response.complete(SyncResult(error))
        return
    group.drop_deadlines(member.member_id, SYNC)
    DEADLINES.set(coordinator, group, member.member_id, SESSION, now_ms + member.session_timeout_ms)
    assignment = assignment_bytes(coordinator, member.assigned, member.protocols[0][1])
    response.complete(SyncResult(0, assignment, request.protocol_type, request.protocol_name))


def _sync_error(member: ConsumerMember, request: SyncRequest) -> int:
    if request.generation != member.epoch:
        return ErrorCode.ILLEGAL_GENERATION
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        member.protocols[0][0],
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return 0


def heartbeat(
    coordinator: GroupCoordinator, group: Group, generation: int, member_id: str, instance_id: str | None, now_ms: int
) -> int:
    """Extend a classic member's session; return the error code of the response."""
    assert isinstance(group, ConsumerGroup), "of this kind"
    member = _classic_member(group, member_id, instance_id)
    if isinstance(member, Refusal):
        return member.error
    if generation != member.epoch:
        return ErrorCode.ILLEGAL_GENERATION
    DEADLINES.set(coordinator, group, member.member_id, SESSION, now_ms + member.session_timeout_ms)
    has_step = (
        member.epoch < _rebalance_epoch(coordinator, group)
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
    )
    if not has_step:
        return 0
    _expect_join(coordinator, group, member, now_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


def _rebalance_epoch(coordinator: GroupCoordinator, group: ConsumerGroup) -> int:
    """Return the epoch that members have to join for: that of the targets, before 4.3 that of the group."""
    data = group.data
    return data.assignment_epoch if coordinator.behavior.classic_members_follow_targets else data.epoch


def leave(
    coordinator: GroupCoordinator, group: Group, leaving: Sequence[Leaving], now_ms: int
) -> tuple[list[int], Callable[[], int]]:
    """Remove members, of either protocol; return an error code for each, and what returns the error of the write."""
    assert isinstance(group, ConsumerGroup), "of this kind"
    errors: list[int] = []
    gone: dict[str, ConsumerMember] = {}
    for member_id, instance_id in leaving:
        named = group.static_members.get(instance_id, "") if instance_id is not None and not member_id else member_id
        member = member_of(group, group.data.members, named, instance_id)
        if isinstance(member, Refusal):
            errors.append(member.error)
        else:
            errors.append(0)
            gone[member.member_id] = member
    if not gone:
        return errors, int
    written = remove(coordinator, group, tuple(gone.values()), now_ms)
    return errors, lambda: written.error


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember | Refusal:
    member = member_of(group, group.data.members, member_id, instance_id)
    if not isinstance(member, Refusal) and not member.speaks_classic:
        return Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def _expect_join(coordinator: GroupCoordinator, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
    """Have a member removed that does not join within its rebalance timeout."""
    if (member.member_id, JOIN) not in group.deadlines:
        deadline_ms = now_ms + member.rebalance_timeout_ms
        DEADLINES.set(coordinator, group, member.member_id, JOIN, deadline_ms)
