"""Whether OffsetFetch may read the offsets of a group (OF-36)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.commit import member_epoch_error
from kproto_server.coordinator.groups import KINDS_WITH_MEMBER_EPOCHS

if TYPE_CHECKING:
    from kproto_server.coordinator.groups import Group


def fetch_error(group: Group | None, member_id: str | None, member_epoch: int) -> int:
    """Return the error of an OffsetFetch, 0 if there is none; only groups with member epochs check the member (OF-36).

    An unknown group is no error: it has no offsets (OF-10, OF-37).
    """
    if group is None or group.kind not in KINDS_WITH_MEMBER_EPOCHS or (member_id is None and member_epoch < 0):
        return 0
    if member_id is None:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return 0 if member_epoch == member.epoch else member_epoch_error(member.speaks_classic)
