"""All records of `__consumer_offsets`, by type (LF-11)."""

from __future__ import annotations

from kproto.records import consumer_group_records as consumer
from kproto.records import group_records as classic
from kproto.records import offset_records as offsets
from kproto.records import share_group_records as share
from kproto.records import streams_group_records as streams
from kproto.records.coordinator import (
    CoordinatorKey,
    CoordinatorRecord,
    CoordinatorValue,
    RecordTypes,
    UnknownRecord,
    read_record,
)

PAIRS: tuple[tuple[type[CoordinatorKey], type[CoordinatorValue]], ...] = (
    (offsets.LegacyOffsetCommitKey, offsets.LegacyOffsetCommitValue),
    (offsets.OffsetCommitKey, offsets.OffsetCommitValue),
    (classic.GroupMetadataKey, classic.GroupMetadataValue),
    (consumer.ConsumerGroupMetadataKey, consumer.ConsumerGroupMetadataValue),
    (consumer.ConsumerGroupPartitionMetadataKey, consumer.ConsumerGroupPartitionMetadataValue),
    (consumer.ConsumerGroupMemberMetadataKey, consumer.ConsumerGroupMemberMetadataValue),
    (consumer.ConsumerGroupTargetAssignmentMetadataKey, consumer.ConsumerGroupTargetAssignmentMetadataValue),
    (consumer.ConsumerGroupTargetAssignmentMemberKey, consumer.ConsumerGroupTargetAssignmentMemberValue),
    (consumer.ConsumerGroupCurrentMemberAssignmentKey, consumer.ConsumerGroupCurrentMemberAssignmentValue),
    (share.ShareGroupPartitionMetadataKey, share.ShareGroupPartitionMetadataValue),
    (share.ShareGroupMemberMetadataKey, share.ShareGroupMemberMetadataValue),
    (share.ShareGroupMetadataKey, share.ShareGroupMetadataValue),
    (share.ShareGroupTargetAssignmentMetadataKey, share.ShareGroupTargetAssignmentMetadataValue),
    (share.ShareGroupTargetAssignmentMemberKey, share.ShareGroupTargetAssignmentMemberValue),
    (share.ShareGroupCurrentMemberAssignmentKey, share.ShareGroupCurrentMemberAssignmentValue),
    (share.ShareGroupStatePartitionMetadataKey, share.ShareGroupStatePartitionMetadataValue),
    (consumer.ConsumerGroupRegularExpressionKey, consumer.ConsumerGroupRegularExpressionValue),
    (streams.StreamsGroupMetadataKey, streams.StreamsGroupMetadataValue),
    (streams.StreamsGroupMemberMetadataKey, streams.StreamsGroupMemberMetadataValue),
    (streams.StreamsGroupTargetAssignmentMetadataKey, streams.StreamsGroupTargetAssignmentMetadataValue),
    (streams.StreamsGroupTargetAssignmentMemberKey, streams.StreamsGroupTargetAssignmentMemberValue),
    (streams.StreamsGroupCurrentMemberAssignmentKey, streams.StreamsGroupCurrentMemberAssignmentValue),
    (streams.StreamsGroupTopologyKey, streams.StreamsGroupTopologyValue),
)

RECORD_TYPES: RecordTypes = {key._record_type: (key, value) for key, value in PAIRS}


def read_offsets_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord | UnknownRecord:
    """Return the decoded key and value of a record of `__consumer_offsets`.

    Raises:
        DecodeError: the key is missing, the version of the value is unknown, or one of them does not have its layout.
    """
    return read_record(RECORD_TYPES, key, value)
