"""StreamsGroupHeartbeat (API key 88): a member of a Streams group joins, stays, leaves, and receives its tasks."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    Array,
    Bool,
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
    only,
    since,
)
from kproto.message import Request, Response


class KeyValue(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: Array[KeyValue]


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


class Topology(Struct):
    epoch: Int32
    subtopologies: Array[Subtopology]


class TaskIds(Struct):
    subtopology_id: String
    partitions: Array[Int32]


class Endpoint(Struct):
    host: String
    port: UInt16


class TaskOffset(Struct):
    subtopology_id: String
    partition: Int32
    offset: Int64


class StreamsGroupHeartbeatRequest(Request, api_key=88, versions=(0, 1), flexible=0):
    """v1: layout of v0."""

    group_id: String
    member_id: String
    member_epoch: Int32
    """0: join; -1: leave; -2: leave temporarily, as a static member."""
    endpoint_information_epoch: Int32
    instance_id: NullableString = None
    rack_id: NullableString = None
    rebalance_timeout_ms: Int32 = -1
    topology: Annotated[Topology | None, nullable()] = None
    active_tasks: Annotated[Array[TaskIds] | None, nullable()] = None
    standby_tasks: Annotated[Array[TaskIds] | None, nullable()] = None
    warmup_tasks: Annotated[Array[TaskIds] | None, nullable()] = None
    process_id: NullableString = None
    user_endpoint: Annotated[Endpoint | None, nullable()] = None
    client_tags: Annotated[Array[KeyValue] | None, nullable()] = None
    task_offsets: Annotated[Array[TaskOffset] | None, nullable()] = None
    task_end_offsets: Annotated[Array[TaskOffset] | None, nullable()] = None
    shutdown_application: Bool = False


class Status(Struct):
    status_code: Int8
    status_detail: String


class TopicPartition(Struct):
    topic: String
    partitions: Array[Int32]


class EndpointToPartitions(Struct):
    user_endpoint: Endpoint
    active_partitions: Array[TopicPartition]
    standby_partitions: Array[TopicPartition]


class StreamsGroupHeartbeatResponse(Response, api_key=88, versions=(0, 1), flexible=0):
    """v1: + acceptable_recovery_lag, + topology_description_required, - acceptable_recovery_lag_legacy."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    member_id: String
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    acceptable_recovery_lag_legacy: Annotated[Int32, only(0)] = 0
    task_offset_interval_ms: Int32
    acceptable_recovery_lag: Annotated[Int64, since(1), ignorable] = -1
    status: Annotated[Array[Status] | None, nullable()]
    active_tasks: Annotated[Array[TaskIds] | None, nullable()] = None
    standby_tasks: Annotated[Array[TaskIds] | None, nullable()] = None
    warmup_tasks: Annotated[Array[TaskIds] | None, nullable()] = None
    topology_description_required: Annotated[Bool, since(1)] = False
    endpoint_information_epoch: Int32
    partitions_by_user_endpoint: Annotated[Array[EndpointToPartitions] | None, nullable()] = None
