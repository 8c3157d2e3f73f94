"""Test data: records of groups, as brokers write them."""

from __future__ import annotations

from typing import Any

from kproto.records import consumer_group_records as consumer
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from tests.coordinator.loading.logs import NOW, Log

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
    fields: dict[str, Any] = {
        "protocol_type": "consumer",
        "generation": 3,
        "protocol": "range" if members else None,
        "leader": "m" if members else None,
        "current_state_timestamp": NOW - 5,
    }
    return GroupMetadataValue(members=members, **{**fields, **others})


def group_log_of(count: int) -> Log:
    """Return a log of some Empty groups."""
    log = Log()
    log.records(*((GroupMetadataKey(group=f"g{number}"), (group_value(), 3)) for number in range(count)))
    return log


def consumer_member(*topics: str, regex: str | None = None) -> consumer.ConsumerGroupMemberMetadataValue:
    return consumer.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="/10.0.0.1",
        subscribed_topic_names=topics,
        subscribed_topic_regex=regex,
        rebalance_timeout_ms=1000,
        server_assignor=None,
    )


def consumer_group(log: Log, *members: str) -> None:
    log.records((consumer.ConsumerGroupMetadataKey(group_id="g"), (consumer.ConsumerGroupMetadataValue(epoch=9), 0)))
    for member_id in members:
        key = consumer.ConsumerGroupMemberMetadataKey(group_id="g", member_id=member_id)
        log.records((key, (consumer_member("t", f"of-{member_id}"), 0)))
        current = consumer.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=8, previous_member_epoch=7, state=0, assigned_partitions=(), partitions_pending_revocation=()
        )
        assignment_key = consumer.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member_id)
        log.records((assignment_key, (current, 0)))
