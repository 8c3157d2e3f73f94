"""Records of streams groups (types 17 and 19 to 23 of `__consumer_offsets`; LF-11)."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Struct,
    UInt16,
    ignorable,
    nullable,
    tag,
)
from kproto.records.coordinator import CoordinatorKey, CoordinatorValue


class StreamsGroupMetadataKey(CoordinatorKey, record_type=17):
    group_id: String


class LastAssignmentConfig(Struct):
    key: String
    value: String


class StreamsGroupMetadataValue(CoordinatorValue, flexible=0):
    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Annotated[Int32, tag(0)] = -1
    last_assignment_configs: Annotated[Array[LastAssignmentConfig] | None, nullable(), tag(1)] = ()
    """Empty by default, as in Kafka's code; its definition says null."""
    stored_description_topology_epoch: Annotated[Int32, tag(2)] = -1
    failed_description_topology_epoch: Annotated[Int32, tag(3)] = -1


class StreamsGroupMemberMetadataKey(CoordinatorKey, record_type=19):
    group_id: String
    member_id: String


class Endpoint(Struct):
    host: String
    port: UInt16


class KeyValue(Struct):
    key: String
    value: String


class StreamsGroupMemberMetadataValue(CoordinatorValue, flexible=0):
    instance_id: NullableString
    rack_id: NullableString
    client_id: String
    client_host: String
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32
    process_id: String
    user_endpoint: Annotated[Endpoint | None, nullable()] = None
    client_tags: Array[KeyValue]


class StreamsGroupTargetAssignmentMetadataKey(CoordinatorKey, record_type=20):
    group_id: String


class StreamsGroupTargetAssignmentMetadataValue(CoordinatorValue, flexible=0):
    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, tag(0), ignorable] = 0


class StreamsGroupTargetAssignmentMemberKey(CoordinatorKey, record_type=21):
    group_id: String
    member_id: String


class TargetTaskIds(Struct):
    subtopology_id: String
    partitions: Array[Int32]


class StreamsGroupTargetAssignmentMemberValue(CoordinatorValue, flexible=0):
    active_tasks: Array[TargetTaskIds]
    standby_tasks: Array[TargetTaskIds]
    warmup_tasks: Array[TargetTaskIds]


class StreamsGroupCurrentMemberAssignmentKey(CoordinatorKey, record_type=22):
    group_id: String
    member_id: String


class TaskIds(Struct):
    subtopology_id: String
    partitions: Array[Int32]
    assignment_epochs: Annotated[Array[Int32] | None, nullable(), tag(0)] = ()
    """Empty by default, as in Kafka's code; its definition says null."""


class StreamsGroupCurrentMemberAssignmentValue(CoordinatorValue, flexible=0):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active_tasks: Array[TaskIds]
    standby_tasks: Array[TaskIds]
    warmup_tasks: Array[TaskIds]
    active_tasks_pending_revocation: Array[TaskIds]
    standby_tasks_pending_revocation: Array[TaskIds]
    warmup_tasks_pending_revocation: Array[TaskIds]


class StreamsGroupTopologyKey(CoordinatorKey, record_type=23):
    group_id: String


class TopicConfig(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: Array[TopicConfig]


class CopartitionGroup(Struct):
    source_topics: Array[Int16]
    source_topic_regex: Array[Int16]
    repartition_source_topics: Array[Int16]


class Subtopology(Struct):
    subtopology_id: String
    source_topics: Array[String]
    source_topic_regex: Array[String]
    state_changelog_topics: Array[TopicInfo]
    repartition_sink_topics: Array[String]
    repartition_source_topics: Array[TopicInfo]
    copartition_groups: Array[CopartitionGroup]


class StreamsGroupTopologyValue(CoordinatorValue, flexible=0):
    epoch: Int32
    subtopologies: Array[Subtopology]
