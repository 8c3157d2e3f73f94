"""Rows of a record that was read with `kproto.records`: the plain decoder's, and both decoders' of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.declaration import ZERO_UUID
from kproto.errors import DecodeError
from kproto.records import consumer_group_records as consumer
from kproto.records import group_records as classic
from kproto.records import offset_records as offsets
from kproto.records.consumer_protocol import PROTOCOL_TYPE, read_subscription
from kproto.spark.decode.tables import TXN_STATES, micros

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.records.coordinator import CoordinatorRecord, RecordTypes
    from kproto.records.record import Record

    Row = tuple[Any, ...]

OFFSET_TYPES = (0, 1)
GROUP_TYPE, CONSUMER_GROUP_TYPE, MEMBER_TYPE = 2, 3, 5
GROUP_TYPES = (GROUP_TYPE, CONSUMER_GROUP_TYPE, MEMBER_TYPE)
READ_TYPES: RecordTypes = {
    # Key and value of an offset have versions of their own, as brokers up to 3.9 read them.
    0: (offsets.LegacyOffsetCommitKey, offsets.OffsetCommitValue),
    1: (offsets.OffsetCommitKey, offsets.OffsetCommitValue),
    GROUP_TYPE: (classic.GroupMetadataKey, classic.GroupMetadataValue),
    CONSUMER_GROUP_TYPE: (consumer.ConsumerGroupMetadataKey, consumer.ConsumerGroupMetadataValue),
    MEMBER_TYPE: (consumer.ConsumerGroupMemberMetadataKey, consumer.ConsumerGroupMemberMetadataValue),
}
"""Record types that become rows; the others are skipped and counted."""


def none_if(nothing: int, value: int) -> int | None:
    """Return the value; None for the number that means that there is none."""
    return None if value == nothing else value


def commit_row(log_partition: int | None, record: Record, found: CoordinatorRecord, producer_id: int | None) -> Row:
    """Return a row of `COMMITS`; its last column is to be told by whoever knows the end of the transaction."""
    key, value = found.key, found.value
    assert isinstance(key, offsets.OffsetCommitKey | offsets.LegacyOffsetCommitKey), "the caller tells types apart"
    place = (log_partition, record.offset, micros(record.timestamp), key.group, key.topic, key.partition)
    if value is None:
        return (*place, True, None, None, None, None, None, None, None, producer_id, TXN_STATES[0])
    assert isinstance(value, offsets.OffsetCommitValue), "it belongs to the key"
    return (
        *place,
        False,
        found.value_version,
        value.offset,
        none_if(-1, value.leader_epoch),
        None if value.topic_id == ZERO_UUID else value.topic_id,
        value.metadata,
        micros(value.commit_timestamp),
        micros(value.expire_timestamp),
        producer_id,
        TXN_STATES[0],
    )


def group_row(log_partition: int | None, record: Record, found: CoordinatorRecord) -> Row:
    """Return a row of `GROUP_METADATA`."""
    place = (log_partition, record.offset, micros(record.timestamp))
    return place + _about(found) + (found.value is None,) + _said(found)


def _about(found: CoordinatorRecord) -> Row:
    """Group, kind and member."""
    match found.key:
        case classic.GroupMetadataKey() as key:
            return key.group, "classic", None
        case consumer.ConsumerGroupMetadataKey() as key:
            return key.group_id, "consumer", None
        case consumer.ConsumerGroupMemberMetadataKey() as key:
            return key.group_id, "consumer", key.member_id
    raise AssertionError("the caller tells types apart")


def _said(found: CoordinatorRecord) -> Row:
    """Protocol type, generation, protocol, leader, time of the state, members, subscribed topics."""
    match found.value:
        case classic.GroupMetadataValue() as group:
            state = micros(group.current_state_timestamp)
            told = (group.protocol_type, group.generation, group.protocol, group.leader, state, len(group.members))
            return (*told, _topics_of_members(group))
        case consumer.ConsumerGroupMetadataValue() as epoch:
            return PROTOCOL_TYPE, epoch.epoch, None, None, None, None, None
        case consumer.ConsumerGroupMemberMetadataValue() as member:
            by_pattern = bool(member.subscribed_topic_regex)
            topics = None if by_pattern else sorted(set(member.subscribed_topic_names))
            return PROTOCOL_TYPE, None, None, None, None, None, topics
    return (None,) * 7


def _topics_of_members(group: classic.GroupMetadataValue) -> list[str] | None:
    """Return what a consumer group's members subscribe to, as brokers read it: None, if one can't be read."""
    if group.protocol_type != PROTOCOL_TYPE or (group.members and group.protocol is None):
        return None
    try:
        return sorted(_union(read_subscription(member.subscription)[1].topics for member in group.members))
    except DecodeError:
        return None


def _union(lists: Iterable[tuple[str, ...]]) -> set[str]:
    return {topic for topics in lists for topic in topics}
