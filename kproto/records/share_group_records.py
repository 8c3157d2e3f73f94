"""Records of share groups (types 9 to 15 of `__consumer_offsets`; LF-11).

Kafka 3.9 wrote type 9, and under the same version a shorter ShareGroupMetadataValue, for its developers' tests; only
the value of later releases can be read.
"""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int8, Int32, Int64, NullableString, String, Struct, Uuid, ignorable, tag
from kproto.records.coordinator import CoordinatorKey, CoordinatorValue


class ShareGroupPartitionMetadataKey(CoordinatorKey, record_type=9):
    group_id: String


class TopicPartitionsInfo(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: Array[Int32]


class TopicInfo(Struct):
    topic_id: Uuid
    topic_name: String


class ShareGroupPartitionMetadataValue(CoordinatorValue, flexible=0):
    initialized_topics: Array[TopicPartitionsInfo]
    deleting_topics: Array[TopicInfo]


class ShareGroupMemberMetadataKey(CoordinatorKey, record_type=10):
    group_id: String
    member_id: String


class ShareGroupMemberMetadataValue(CoordinatorValue, flexible=0):
    rack_id: NullableString
    client_id: String
    client_host: String
    subscribed_topic_names: Array[String]


class ShareGroupMetadataKey(CoordinatorKey, record_type=11):
    group_id: String


class ShareGroupMetadataValue(CoordinatorValue, flexible=0):
    epoch: Int32
    metadata_hash: Int64


class ShareGroupTargetAssignmentMetadataKey(CoordinatorKey, record_type=12):
    group_id: String


class ShareGroupTargetAssignmentMetadataValue(CoordinatorValue, flexible=0):
    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, tag(0), ignorable] = 0


class ShareGroupTargetAssignmentMemberKey(CoordinatorKey, record_type=13):
    group_id: String
    member_id: String


class TopicPartition(Struct):
    topic_id: Uuid
    partitions: Array[Int32]


class ShareGroupTargetAssignmentMemberValue(CoordinatorValue, flexible=0):
    topic_partitions: Array[TopicPartition]


class ShareGroupCurrentMemberAssignmentKey(CoordinatorKey, record_type=14):
    group_id: String
    member_id: String


class ShareGroupCurrentMemberAssignmentValue(CoordinatorValue, flexible=0):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: Array[TopicPartition]


class ShareGroupStatePartitionMetadataKey(CoordinatorKey, record_type=15):
    group_id: String


class ShareGroupStatePartitionMetadataValue(CoordinatorValue, flexible=0):
    initializing_topics: Array[TopicPartitionsInfo]
    initialized_topics: Array[TopicPartitionsInfo]
    deleting_topics: Array[TopicInfo]
