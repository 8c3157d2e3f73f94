"""Heartbeat: extend a member's session, and have it rejoin if the group rebalances (GP-35).

A commit extends the session too (`Group.note_commit`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.membership import members
from kproto_server.coordinator.membership.state_machine import COMPLETING, HEARTBEAT, STABLE

if TYPE_CHECKING:
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior


def heartbeat(
    group: Group | None,
    generation: int,
    member_id: str,
    group_instance_id: str | None,
    now_ms: int,
    behavior: CoordinatorBehavior,
) -> int:
    """Extend a member's session; return the error code of the response."""
    if group is None or group.kind != "classic":
        return ErrorCode.UNKNOWN_MEMBER_ID
    if behavior.refuses_all_heartbeats_in_rebalance and group.state is not STABLE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    error = members.member_error(group, member_id, group_instance_id, behavior)
    if error:
        return error
    if group.state is COMPLETING and behavior.ignores_generation_before_sync:
        return ErrorCode.REBALANCE_IN_PROGRESS
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is COMPLETING and behavior.refuses_heartbeats_before_sync:
        return ErrorCode.REBALANCE_IN_PROGRESS
    member = group.members[member_id]
    if not member.is_new:  # its first JoinGroup is pending, and has a longer deadline than the session
        members.extend_session(group, member, now_ms)
    return HEARTBEAT[group.state]
