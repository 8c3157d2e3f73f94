"""Which groups and members the offsets of a transaction may come from (OC-52, KIP-447): a table of decisions."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k28_txn_offset_commit import TxnOffsetCommitRequest
from kproto_server.coordinator.groups import Group, GroupState, Member
from kproto_server.coordinator.transactional_offsets import membership_error
from tests.coordinator.behaviors import behavior_of


@pytest.mark.parametrize(
    ("release", "has_group", "member_id", "generation", "instance_id", "expected"),
    [
        ("2.8", False, "", 0, None, ErrorCode.NONE),
        ("2.8", False, "", 1, None, ErrorCode.ILLEGAL_GENERATION),
        ("4.4", False, "", 0, None, ErrorCode.ILLEGAL_GENERATION),
        ("2.8", True, "other", 3, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("4.4", True, "", 3, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("2.8", True, "m", 0, None, ErrorCode.ILLEGAL_GENERATION),
        ("2.8", True, "m", 3, "unknown", ErrorCode.NONE),
        ("4.4", True, "m", 3, "unknown", ErrorCode.UNKNOWN_MEMBER_ID),
        ("4.4", True, "m", 3, "i", ErrorCode.NONE),
    ],
)
def test_offsets_of_a_classic_group(
    release: str, has_group: bool, member_id: str, generation: int, instance_id: str | None, expected: ErrorCode
) -> None:
    group = Group("g", 0)
    group.add_member(Member("m", group_instance_id="i"))
    group.generation = 3
    group.transition_to(GroupState.STABLE, 0)
    request = TxnOffsetCommitRequest(
        transactional_id="a",
        group_id="g",
        producer_id=1,
        producer_epoch=0,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=(),
    )
    assert membership_error(group if has_group else None, request, 3, behavior_of(release), {}) == expected
