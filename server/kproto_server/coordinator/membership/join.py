"""JoinGroup: a new member joins, or a member joins again (GP-10 to GP-18).

Theory of operation. A JoinGroup is one of four kinds:

- without a member id and with an instance id that the group knows: a static member returns (`static_members`);
- without a member id otherwise: a new member. Since version 4 it first gets an id with MEMBER_ID_REQUIRED (KIP-394),
  which is pending in the group until the member joins with it;
- with a pending member id: this second JoinGroup adds the member;
- with a member's id: the member rejoins.

The last three keep the request pending for the rebalance that they cause or take part in, but for a member that rejoins
without a change (`state_machine.REJOIN`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.groups import KINDS_WITH_CLASSIC_MEMBERS, KINDS_WITH_MEMBER_EPOCHS, Group, Member
from kproto_server.coordinator.membership import members, static_members, timers
from kproto_server.coordinator.membership.limits import NEW_MEMBER_TIMEOUT_MS, group_limits_of
from kproto_server.coordinator.membership.phases import InitialDelayedJoin
from kproto_server.coordinator.membership.protocols import supports_protocols
from kproto_server.coordinator.membership.rebalance import prepare_rebalance_or_complete_join
from kproto_server.coordinator.membership.records import write_group
from kproto_server.coordinator.membership.responses import PendingResponse, rejected_join
from kproto_server.coordinator.membership.state_machine import DEAD, EMPTY, PREPARING, REJOIN, Rejoin
from kproto_server.coordinator.write_errors import group_write_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.membership.requests import JoinRequest
    from kproto_server.coordinator.membership.responses import JoinResult

    Response = PendingResponse[JoinResult]


def join(coordinator: GroupCoordinator, request: JoinRequest, now_ms: int) -> Response:
    """Handle a JoinGroup to a node that coordinates the group; return its response, pending or complete."""
    response: Response = PendingResponse()
    group = coordinator.groups.get(request.group_id)
    write: Callable[[], object] | None = None
    if group is None or group.kind != "classic":
        group, write = _begin_classic_group(coordinator, group, request, now_ms, response)
        if group is None:
            return response
    _join_classic(coordinator, group, request, now_ms, response)
    if write is not None:
        write()
    if group.state is not DEAD:
        timers.schedule(coordinator, group)
    return response


def _begin_classic_group(
    coordinator: GroupCoordinator, present: Group | None, request: JoinRequest, now_ms: int, response: Response
) -> tuple[Group | None, Callable[[], object] | None]:
    """Begin the classic group that a JoinGroup without one may begin; return it, and what writes it once it has a
    member, if something does. None: the request began none, and was handled.

    ``present``: a group of another kind with this id.
    """
    by_offsets = coordinator.group(request.group_id) if present is None else None
    is_replaced = present is not None and present.kind in KINDS_WITH_MEMBER_EPOCHS and not present.members
    if present is not None and not is_replaced:
        if present.kind not in KINDS_WITH_CLASSIC_MEMBERS:
            response.complete(rejected_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""))
        else:
            from kproto_server.coordinator.consumer_groups import classic_members

            classic_members.join(coordinator, present, request, now_ms, response)
        return None, None
    if request.member_id:
        error = None if by_offsets is None else _join_error(coordinator, by_offsets, request)
        response.complete(error or rejected_join(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        return None, None
    group = Group(request.group_id, now_ms)
    if by_offsets is None and coordinator.behavior.is_new_coordinator:
        # The new coordinator writes a new group at once, still without members (GP-12).
        return group, _begin_new_group(coordinator, group, present, response, now_ms)
    coordinator.groups.add(group)
    return group, None


def _begin_new_group(
    coordinator: GroupCoordinator, group: Group, replaced: Group | None, response: Response, now_ms: int
) -> Callable[[], object]:
    """Register a new group, in place of an empty one of another kind; return what writes it.

    If the log cannot write it, the members get the error, and all is as before. Too few in-sync replicas are no error
    here: the first generation begins before the wait for them times out, and its SyncGroup gets the error.
    """
    from kproto_server.coordinator.epoch_groups.writing import replace_group  # not in the old coordinator

    settle_registry = replace_group(coordinator, replaced, group)

    def settle(log_error: int) -> None:
        if log_error == ErrorCode.REQUEST_TIMED_OUT:
            log_error = 0
        if log_error:
            error = group_write_error(log_error, coordinator.behavior)
            response.complete(rejected_join(ErrorCode(error), ""))
        settle_registry(log_error)

    def write() -> None:
        write_group(coordinator, Group(group.group_id, now_ms), now_ms, settle, replaced=replaced)

    return write


def _join_classic(
    coordinator: GroupCoordinator, group: Group, request: JoinRequest, now_ms: int, response: Response
) -> None:
    """Handle a JoinGroup to a classic group."""
    if not _accepts_member(coordinator, group, request.member_id):
        _reject_member(coordinator, group, request.member_id, now_ms)
        response.complete(rejected_join(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
        return
    error = _join_error(coordinator, group, request)
    if error is not None:
        response.complete(error)
    elif not request.member_id:
        _join_new_member(coordinator, group, request, now_ms, response)
    elif request.member_id in group.pending_members:
        _add_member(coordinator, group, request, request.member_id, now_ms, response)
    else:
        _rejoin(coordinator, group, request, now_ms, response)


def _join_error(coordinator: GroupCoordinator, group: Group, request: JoinRequest) -> JoinResult | None:
    """Return why the request is rejected (GP-10 rows 10 and 11); None if it is not."""
    if not supports_protocols(group, request.protocol_type, request.protocols, coordinator.behavior):
        return rejected_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
    instance = request.group_instance_id
    if request.member_id in group.pending_members:
        # Static members never get an id to come back with: real brokers fail (measured on 2.8.2 and 4.4.0).
        return None if instance is None else rejected_join(ErrorCode.UNKNOWN_SERVER_ERROR, "")
    if not request.member_id:
        return None
    # All releases with static members reject an unknown instance here; a commit is checked by some only.
    if instance is not None and instance not in group.static_members:
        return rejected_join(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
    error = members.member_error(group, request.member_id, instance, coordinator.behavior)
    return rejected_join(ErrorCode(error), request.member_id) if error else None


def _join_new_member(
    coordinator: GroupCoordinator, group: Group, request: JoinRequest, now_ms: int, response: Response
) -> None:
    """Handle a JoinGroup without a member id: generate an id, and return it or join with it (GP-14)."""
    instance = request.group_instance_id
    member_id = coordinator.new_member_id(request.client_id if instance is None else instance)
    if instance is not None and instance in group.static_members:
        static_members.rejoin(coordinator, group, request, member_id, now_ms, response)
    elif instance is None and request.requires_known_member_id:
        deadline_ms = now_ms + request.session_timeout_ms
        group.pending_members[member_id] = deadline_ms
        members.check_members_by(group, deadline_ms)
        response.complete(rejected_join(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    else:
        _add_member(coordinator, group, request, member_id, now_ms, response)


def _add_member(
    coordinator: GroupCoordinator, group: Group, request: JoinRequest, member_id: str, now_ms: int, response: Response
) -> None:
    """Add a new member, and begin a rebalance (GP-16)."""
    group.pending_members.pop(member_id, None)
    member = Member(
        member_id,
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=request.protocols,
    )
    member.is_new = True
    if not group.members:
        group.protocol_type = request.protocol_type
    # The old coordinator extends the initial rebalance delay only before the group's first generation.
    if isinstance(group.phase, InitialDelayedJoin) and (
        coordinator.behavior.is_new_coordinator or group.generation == 0
    ):
        group.new_member_added = True
    group.add_member(member)
    members.delay_join(group, member, response)
    # The member has no id for heartbeats yet; its session timeout runs from the response on.
    members.extend_session(group, member, now_ms, NEW_MEMBER_TIMEOUT_MS)
    prepare_rebalance_or_complete_join(coordinator, group, now_ms)


def _rejoin(coordinator: GroupCoordinator, group: Group, request: JoinRequest, now_ms: int, response: Response) -> None:
    """Handle a JoinGroup of a present member (GP-17)."""
    member = group.members[request.member_id]
    is_unchanged = member.protocols == request.protocols
    match REJOIN[group.state, member.member_id == group.leader_id, is_unchanged]:
        case Rejoin.RESPOND:
            response.complete(members.join_result(group, member))
        case Rejoin.WAIT | Rejoin.REBALANCE:
            members.update(group, member, request)
            members.delay_join(group, member, response)
            prepare_rebalance_or_complete_join(coordinator, group, now_ms)


def _accepts_member(coordinator: GroupCoordinator, group: Group, member_id: str) -> bool:
    """Return whether `group.max.size` lets a member join or rejoin (GP-15)."""
    behavior, size_max = coordinator.behavior, group_limits_of(coordinator.settings.current).size_max
    if len(group.members) < size_max or not behavior.limits_group_size:
        return True
    member = group.members.get(member_id)
    if behavior.full_group_keeps_known_members:
        # Up to 2.5 a group that is too large rejects the members that rejoin last.
        if member is None:
            return bool(member_id)
        return len(group.members) == size_max or member.pending_join is not None
    if group.state is EMPTY:
        return True
    if group.state is PREPARING:
        return group.pending_join_count < size_max or (member is not None and member.pending_join is not None)
    return member is not None


def _reject_member(coordinator: GroupCoordinator, group: Group, member_id: str, now_ms: int) -> None:
    """Remove the member that exceeds `group.max.size`.

    The other members may be waiting for it alone; the new coordinator finds that out only at the next event.
    """
    member = group.members.get(member_id)
    if member is not None:
        members.remove(group, member)
    group.pending_members.pop(member_id, None)
    if group.state is PREPARING and not coordinator.behavior.is_new_coordinator:
        prepare_rebalance_or_complete_join(coordinator, group, now_ms)
