"""The member that a request names, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.groups import Member

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.coordinator.groups import Group

MemberT = TypeVar("MemberT", bound=Member)
T = TypeVar("T")


def member_of(
    group: Group, members: Mapping[str, MemberT], member_id: str, instance_id: str | None
) -> MemberT | Refusal:
    """Return the member with an id, or with an instance id that the member id has to belong to."""
    if instance_id is not None:
        return static_member(group, members, member_id, instance_id)
    member = members.get(member_id)
    if member is None:
        return unknown_member(group, member_id)
    return member


def unknown_member(group: Group, member_id: str) -> Refusal:
    """Return why a member cannot be found."""
    return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")


def static_member(group: Group, members: Mapping[str, MemberT], member_id: str, instance_id: str) -> MemberT | Refusal:
    """Return the member of an instance, or why the member id is not the one of the instance."""
    present_id = group.static_members.get(instance_id)
    if present_id is None:
        return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if present_id != member_id:
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {present_id}."
        return Refusal(ErrorCode.FENCED_INSTANCE_ID, message)
    return members[present_id]


def unreleased(member_id: str, instance_id: str, owner_id: str) -> Refusal:
    """Return why a static member cannot join while another member has its instance id."""
    message = (
        f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
        f"is owned by {owner_id} member."
    )
    return Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, message)


def replaced(values: Mapping[str, T], old_id: str, new_id: str, value: T) -> dict[str, T]:
    """Return the values of members with that of a new member in place of an old one's."""
    found = {member_id: one for member_id, one in values.items() if member_id != old_id}
    found[new_id] = value
    return found
