"""Rows of records that `kproto.records` decoded: all of the reference decoder, the group rows of both decoders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.arrow.decoding import micros
from kproto.declaration import ZERO_UUID
from kproto.errors import DecodeError
from kproto.logs.transactions import NONE, TXN_STATES
from kproto.records import consumer_group_records as consumer
from kproto.records import group_records as classic
from kproto.records import offset_records as offsets
from kproto.records import share_group_records as share
from kproto.records import streams_group_records as streams
from kproto.records.consumer_protocol import PROTOCOL_TYPE, read_subscription

if TYPE_CHECKING:
    from kproto.records.coordinator import CoordinatorRecord, RecordTypes
    from kproto.records.record import Record

    Row = tuple[Any, ...]

OFFSET_TYPES = (0, 1)
GROUP_TYPE = 2
CONSUMER_TYPES, SHARE_TYPES, STREAMS_TYPES = (3, 5), (11, 10), (17, 19)
"""The types of the records about a group and about a member."""
GROUP_TYPES = (GROUP_TYPE, *CONSUMER_TYPES, *SHARE_TYPES, *STREAMS_TYPES)
SHARE, STREAMS = "share", "streams"
"""The kinds of groups that are their protocol types, too."""
READ_TYPES: RecordTypes = {
    # The key's version says nothing about the value's: a key of v0 can have a value of any version, as in brokers up to
    # 3.9.
    0: (offsets.LegacyOffsetCommitKey, offsets.OffsetCommitValue),
    1: (offsets.OffsetCommitKey, offsets.OffsetCommitValue),
    GROUP_TYPE: (classic.GroupMetadataKey, classic.GroupMetadataValue),
    3: (consumer.ConsumerGroupMetadataKey, consumer.ConsumerGroupMetadataValue),
    5: (consumer.ConsumerGroupMemberMetadataKey, consumer.ConsumerGroupMemberMetadataValue),
    11: (share.ShareGroupMetadataKey, share.ShareGroupMetadataValue),
    10: (share.ShareGroupMemberMetadataKey, share.ShareGroupMemberMetadataValue),
    17: (streams.StreamsGroupMetadataKey, streams.StreamsGroupMetadataValue),
    19: (streams.StreamsGroupMemberMetadataKey, streams.StreamsGroupMemberMetadataValue),
}
"""Record types that become rows; other types are skipped and counted."""


def none_if(nothing: int, value: int) -> int | None:
    """Return the value; None if it equals ``nothing``."""
    return None if value == nothing else value


def commit_row(log_partition: int | None, record: Record, found: CoordinatorRecord, producer_id: int | None) -> Row:
    """Return a row of `COMMITS` whose last column, the transaction's state, is `NONE`."""
    key, value = found.key, found.value
    assert isinstance(key, offsets.OffsetCommitKey | offsets.LegacyOffsetCommitKey), "the caller checked the type"
    identity = (log_partition, record.offset, micros(record.timestamp), key.group, key.topic, key.partition)
    if value is None:
        return (*identity, True, None, None, None, None, None, None, None, producer_id, TXN_STATES[NONE])
    assert isinstance(value, offsets.OffsetCommitValue), "READ_TYPES pairs it with the key"
    return (
        *identity,
        False,
        found.value_version,
        value.offset,
        none_if(-1, value.leader_epoch),
        None if value.topic_id == ZERO_UUID else value.topic_id,
        value.metadata,
        micros(value.commit_timestamp),
        micros(value.expire_timestamp),
        producer_id,
        TXN_STATES[NONE],
    )


def group_row(log_partition: int | None, record: Record, found: CoordinatorRecord) -> Row:
    """Return a row of `GROUP_METADATA`."""
    identity = (log_partition, record.offset, micros(record.timestamp))
    return identity + _subject(found) + (found.value is None,) + _state(found)


def _subject(found: CoordinatorRecord) -> Row:
    """Return group, kind and member."""
    match found.key:
        case classic.GroupMetadataKey() as key:
            return key.group, "classic", None
        case consumer.ConsumerGroupMetadataKey() as key:
            return key.group_id, "consumer", None
        case consumer.ConsumerGroupMemberMetadataKey() as key:
            return key.group_id, "consumer", key.member_id
        case share.ShareGroupMetadataKey() as key:
            return key.group_id, SHARE, None
        case share.ShareGroupMemberMetadataKey() as key:
            return key.group_id, SHARE, key.member_id
        case streams.StreamsGroupMetadataKey() as key:
            return key.group_id, STREAMS, None
        case streams.StreamsGroupMemberMetadataKey() as key:
            return key.group_id, STREAMS, key.member_id
    raise AssertionError("the caller checked the type")


def _state(found: CoordinatorRecord) -> Row:
    """Return protocol type, generation, protocol, leader, time of the state, member count, subscribed topics."""
    match found.value:
        case classic.GroupMetadataValue() as group:
            state_ts = micros(group.current_state_timestamp)
            columns = (group.protocol_type, group.generation, group.protocol, group.leader, state_ts)
            return (*columns, len(group.members), _subscribed_topics(group))
        case consumer.ConsumerGroupMetadataValue() as epoch:
            return PROTOCOL_TYPE, epoch.epoch, None, None, None, None, None
        case consumer.ConsumerGroupMemberMetadataValue() as member:
            by_pattern = bool(member.subscribed_topic_regex)
            topics = None if by_pattern else sorted(set(member.subscribed_topic_names))
            return PROTOCOL_TYPE, None, None, None, None, None, topics
        case share.ShareGroupMetadataValue() as epoch:
            return SHARE, epoch.epoch, None, None, None, None, None
        case share.ShareGroupMemberMetadataValue() as member:
            return SHARE, None, None, None, None, None, sorted(set(member.subscribed_topic_names))
        case streams.StreamsGroupMetadataValue() as epoch:
            return STREAMS, epoch.epoch, None, None, None, None, None
        case streams.StreamsGroupMemberMetadataValue():
            return STREAMS, None, None, None, None, None, None
    return (None,) * 7


def _subscribed_topics(group: classic.GroupMetadataValue) -> list[str] | None:
    """Return the topics of all members of a consumer group; None if a subscription cannot be decoded, as in brokers."""
    if group.protocol_type != PROTOCOL_TYPE or (group.members and group.protocol is None):
        return None
    try:
        subscriptions = [read_subscription(member.subscription)[1] for member in group.members]
    except DecodeError:
        return None
    return sorted({topic for subscription in subscriptions for topic in subscription.topics})
