"""Heartbeat: a member lives, and hears whether it has to join again (GP-35). A commit is as good (OC-25)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.membership import members
from kproto_server.coordinator.membership.machine import BEATS_BY_COMMIT, COMPLETING, HEARTBEAT, STABLE

if TYPE_CHECKING:
    from kproto_server.coordinator.groups import Group, Member
    from kproto_server.releases.profiles import Profile


def heartbeat(
    group: Group | None,
    generation: int,
    member_id: str,
    group_instance_id: str | None,
    now_ms: int,
    profile: Profile,
) -> int:
    """Take note of a heartbeat; return the error that answers it."""
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if profile.rebalance_hides_heartbeats and group.state is not STABLE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    error = members.member_error(group, member_id, group_instance_id, profile)
    if error:
        return error
    if group.state is COMPLETING and profile.completing_rebalance_hides_generation:
        return ErrorCode.REBALANCE_IN_PROGRESS
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is COMPLETING and profile.refuses_heartbeats_before_sync:
        return ErrorCode.REBALANCE_IN_PROGRESS
    _lives(group, group.members[member_id], now_ms)
    return HEARTBEAT[group.state]


def note_commit(group: Group, member_id: str, now_ms: int, profile: Profile) -> None:
    """A member's commit was accepted: it lives."""
    member = group.members.get(member_id)
    if member is not None and group.state in BEATS_BY_COMMIT and profile.commits_are_heartbeats:
        _lives(group, member, now_ms)


def _lives(group: Group, member: Member, now_ms: int) -> None:
    """Give a member time anew; one whose first JoinGroup waits has more than that."""
    if not member.is_new:
        members.expect(group, member, now_ms)
