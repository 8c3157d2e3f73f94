"""StreamsGroupDescribe (API key 89): state, members and topology of Streams groups."""

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
    since,
)
from kproto.message import Request, Response


class StreamsGroupDescribeRequest(Request, api_key=89, versions=(0, 1), flexible=0):
    """v1: + include_topology_description."""

    group_ids: Array[String]
    include_authorized_operations: Bool
    include_topology_description: Annotated[Bool, since(1)] = False


class KeyValue(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: Array[KeyValue]


class Subtopology(Struct):
    subtopology_id: String
    source_topics: Array[String]
    repartition_sink_topics: Array[String]
    state_changelog_topics: Array[TopicInfo]
    repartition_source_topics: Array[TopicInfo]


class Topology(Struct):
    epoch: Int32
    subtopologies: Annotated[Array[Subtopology] | None, nullable()] = None


class Endpoint(Struct):
    host: String
    port: UInt16


class TaskOffset(Struct):
    subtopology_id: String
    partition: Int32
    offset: Int64


class TaskIds(Struct):
    subtopology_id: String
    partitions: Array[Int32]


class Assignment(Struct):
    active_tasks: Array[TaskIds]
    standby_tasks: Array[TaskIds]
    warmup_tasks: Array[TaskIds]


class Member(Struct):
    member_id: String
    member_epoch: Int32
    instance_id: NullableString = None
    rack_id: NullableString = None
    client_id: String
    client_host: String
    topology_epoch: Int32
    process_id: String
    user_endpoint: Annotated[Endpoint | None, nullable()] = None
    client_tags: Array[KeyValue]
    task_offsets: Array[TaskOffset]
    task_end_offsets: Array[TaskOffset]
    assignment: Assignment
    target_assignment: Assignment
    is_classic: Bool


class TopologyDescriptionNode(Struct):
    name: String
    node_type: Int8
    source_topics: Array[String]
    sink_topic: NullableString = None
    stores: Array[String]
    successors: Array[String]


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: String
    nodes: Array[TopologyDescriptionNode]


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode
    processor: TopologyDescriptionNode


class TopologyDescription(Struct):
    subtopologies: Array[TopologyDescriptionSubtopology]
    global_stores: Array[TopologyDescriptionGlobalStore]


class DescribedGroup(Struct):
    error_code: Int16
    error_message: NullableString = None
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    topology: Annotated[Topology | None, nullable()] = None
    members: Array[Member]
    authorized_operations: Int32 = -2147483648
    """Bit n is ACL operation n; -2147483648 if the request does not ask for it."""
    topology_description: Annotated[TopologyDescription | None, since(1), nullable()] = None
    topology_description_status: Annotated[Int8, since(1)] = 0
    """0: not requested; 1: not stored; 2: error; 3: available."""
    assignor_name: Annotated[NullableString, since(1), ignorable] = None


class StreamsGroupDescribeResponse(Response, api_key=89, versions=(0, 1), flexible=0, has_slices=True):
    """v1: + groups[].topology_description?, + groups[].topology_description_status, + groups[].assignor_name?."""

    throttle_time_ms: Int32
    groups: Array[DescribedGroup]
