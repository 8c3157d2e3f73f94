"""Values of groups, as brokers write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.records.group_records import GroupMetadataValue, MemberMetadata
from tests.coordinator.loading.logs import NOW

if TYPE_CHECKING:
    pass


MEMBER = MemberMetadata(
    member_id="m",
    group_instance_id="i",
    client_id="c",
    client_host="/10.0.0.1",
    rebalance_timeout=300_000,
    session_timeout=10_000,
    subscription=bytes.fromhex("0000 00000001 000174 00000000"),
    assignment=b"a",
)


def group_value(*members: MemberMetadata, **others: Any) -> GroupMetadataValue:
    facts: dict[str, Any] = {
        "protocol_type": "consumer",
        "generation": 3,
        "protocol": "range" if members else None,
        "leader": "m" if members else None,
        "current_state_timestamp": NOW - 5,
    }
    return GroupMetadataValue(members=members, **{**facts, **others})
