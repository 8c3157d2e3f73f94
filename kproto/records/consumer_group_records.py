"""Records of KIP-848 consumer groups (types 3 to 8 and 16 of `__consumer_offsets`; LF-11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from kproto.declaration import (
    Array,
    Bytes,
    Int8,
    Int32,
    Int64,
    NullableString,
    String,
    Struct,
    TaggedField,
    Uuid,
    ignorable,
    nullable,
    tag,
)
from kproto.errors import DecodeError
from kproto.message import Message
from kproto.records.coordinator import CoordinatorKey, CoordinatorValue

if TYPE_CHECKING:
    from typing import Self


CLASSIC_MEMBER_METADATA = 0
"""The tag of `ConsumerGroupMemberMetadataValue.classic_member_metadata`."""
NULL, PRESENT = b"\0", b"\1"


class ConsumerGroupMetadataKey(CoordinatorKey, record_type=3):
    group_id: String


class ConsumerGroupMetadataValue(CoordinatorValue, flexible=0):
    epoch: Int32
    metadata_hash: Annotated[Int64, tag(0)] = 0


class ConsumerGroupPartitionMetadataKey(CoordinatorKey, record_type=4):
    group_id: String


class PartitionMetadata(Struct):
    partition: Int32
    racks: Array[String]


class TopicMetadata(Struct):
    topic_id: Uuid
    topic_name: String
    num_partitions: Int32
    partition_metadata: Array[PartitionMetadata]


class ConsumerGroupPartitionMetadataValue(CoordinatorValue, flexible=0):
    topics: Array[TopicMetadata]


class ConsumerGroupMemberMetadataKey(CoordinatorKey, record_type=5):
    group_id: String
    member_id: String


class ClassicProtocol(Struct):
    name: String
    metadata: Bytes


class ClassicMemberMetadata(Message, flexible=0):
    """The subscription of a member with the classic protocol, in a group that uses the KIP-848 protocol."""

    session_timeout_ms: Int32
    supported_protocols: Array[ClassicProtocol]


NO_CLASSIC_METADATA = ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=())


class ConsumerGroupMemberMetadataValue(CoordinatorValue, flexible=0):
    """Tag 0 is `classic_member_metadata`, null by default.

    It is Kafka's only tagged field that is a nullable struct, and such a field has its own layout: one byte, 0 for null
    and 1 before the struct. Kafka writes the null, and omits a struct of which all fields are empty, so a missing tag
    means the empty struct. The field stays encoded, among the unknown tags.
    """

    instance_id: NullableString
    rack_id: NullableString
    client_id: String
    client_host: String
    subscribed_topic_names: Array[String]
    subscribed_topic_regex: NullableString
    rebalance_timeout_ms: Int32 = -1
    server_assignor: NullableString
    unknown_tagged_fields = (TaggedField(CLASSIC_MEMBER_METADATA, NULL),)

    @property
    def classic_member_metadata(self) -> ClassicMemberMetadata | None:
        """The decoded content of tag 0.

        Raises:
            DecodeError: the content does not have its layout.
        """
        content = {field.tag: field.data for field in self.unknown_tagged_fields}.get(CLASSIC_MEMBER_METADATA)
        if content is None:
            return NO_CLASSIC_METADATA
        if content[:1] == NULL:
            return None
        if content[:1] != PRESENT:
            raise DecodeError("ConsumerGroupMemberMetadataValue.classic_member_metadata", 0, "neither null nor present")
        return ClassicMemberMetadata.decode(content[1:], 0)

    def with_classic_member_metadata(self, metadata: ClassicMemberMetadata | None) -> Self:
        """Return a copy with this content of tag 0, written as Kafka does."""
        others = [field for field in self.unknown_tagged_fields if field.tag != CLASSIC_MEMBER_METADATA]
        if metadata != NO_CLASSIC_METADATA:
            content = NULL if metadata is None else PRESENT + metadata.encode(0)
            others.insert(0, TaggedField(CLASSIC_MEMBER_METADATA, content))
        return self.replace(unknown_tagged_fields=tuple(others))


class ConsumerGroupTargetAssignmentMetadataKey(CoordinatorKey, record_type=6):
    group_id: String


class ConsumerGroupTargetAssignmentMetadataValue(CoordinatorValue, flexible=0):
    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, tag(0), ignorable] = 0


class ConsumerGroupTargetAssignmentMemberKey(CoordinatorKey, record_type=7):
    group_id: String
    member_id: String


class TopicPartition(Struct):
    topic_id: Uuid
    partitions: Array[Int32]


class ConsumerGroupTargetAssignmentMemberValue(CoordinatorValue, flexible=0):
    topic_partitions: Array[TopicPartition]


class ConsumerGroupCurrentMemberAssignmentKey(CoordinatorKey, record_type=8):
    group_id: String
    member_id: String


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: Array[Int32]
    assignment_epochs: Annotated[Array[Int32] | None, nullable(), tag(0)] = ()
    """Empty by default, as in Kafka's code; its definition says null."""


class ConsumerGroupCurrentMemberAssignmentValue(CoordinatorValue, flexible=0):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: Array[TopicPartitions]
    partitions_pending_revocation: Array[TopicPartitions]


class ConsumerGroupRegularExpressionKey(CoordinatorKey, record_type=16):
    group_id: String
    regular_expression: String


class ConsumerGroupRegularExpressionValue(CoordinatorValue, flexible=0):
    topics: Array[String]
    version: Int64
    timestamp: Int64
