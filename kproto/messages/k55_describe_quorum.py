"""DescribeQuorum (API key 55): leader, voters and observers of the controllers' log."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    ZERO_UUID,
    Array,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Struct,
    UInt16,
    Uuid,
    ignorable,
    since,
)
from kproto.message import Request, Response


class PartitionData(Struct):
    partition_index: Int32


class TopicData(Struct):
    topic_name: String
    partitions: Array[PartitionData]


class DescribeQuorumRequest(Request, api_key=55, versions=(0, 2), flexible=0):
    """v1-v2: layout of v0."""

    topics: Array[TopicData]


class ReplicaState(Struct):
    replica_id: Int32
    replica_directory_id: Annotated[Uuid, since(2)] = ZERO_UUID
    log_end_offset: Int64
    last_fetch_timestamp: Annotated[Int64, since(1), ignorable] = -1
    last_caught_up_timestamp: Annotated[Int64, since(1), ignorable] = -1


class DescribeQuorumResponsePartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: Annotated[NullableString, since(2), ignorable] = ""
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: Array[ReplicaState]
    observers: Array[ReplicaState]


class DescribeQuorumResponseTopicData(Struct):
    topic_name: String
    partitions: Array[DescribeQuorumResponsePartitionData]


class Listener(Struct):
    name: String
    host: String
    port: UInt16


class Node(Struct):
    node_id: Int32
    listeners: Array[Listener]


class DescribeQuorumResponse(Response, api_key=55, versions=(0, 2), flexible=0):
    """v1: + topics[].partitions[].current_voters[].last_fetch_timestamp,
          + topics[].partitions[].current_voters[].last_caught_up_timestamp,
          + topics[].partitions[].observers[].last_fetch_timestamp,
          + topics[].partitions[].observers[].last_caught_up_timestamp
    v2: + error_message?, + topics[].partitions[].error_message?,
          + topics[].partitions[].current_voters[].replica_directory_id,
          + topics[].partitions[].observers[].replica_directory_id, + nodes
    """

    error_code: Int16
    error_message: Annotated[NullableString, since(2), ignorable] = ""
    topics: Array[DescribeQuorumResponseTopicData]
    nodes: Annotated[Array[Node], since(2)] = ()
