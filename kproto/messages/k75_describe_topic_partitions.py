"""DescribeTopicPartitions (API key 75): topics and partitions page by page, for topics too large for Metadata."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Int16, Int32, NullableString, String, Struct, Uuid, nullable
from kproto.message import Request, Response


class TopicRequest(Struct):
    name: String


class Cursor(Struct):
    topic_name: String
    partition_index: Int32


class DescribeTopicPartitionsRequest(Request, api_key=75, versions=(0, 0), flexible=0):
    topics: Array[TopicRequest]
    response_partition_limit: Int32 = 2000
    cursor: Annotated[Cursor | None, nullable()] = None
    """The position to continue from; null: the beginning."""


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = -1
    replica_nodes: Array[Int32]
    isr_nodes: Array[Int32]
    eligible_leader_replicas: Annotated[Array[Int32] | None, nullable()] = None
    last_known_elr: Annotated[Array[Int32] | None, nullable()] = None
    offline_replicas: Array[Int32]


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: Int16
    name: NullableString
    topic_id: Uuid
    is_internal: Bool = False
    partitions: Array[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: Int32 = -2147483648
    """Bit n is ACL operation n; -2147483648 if the request does not ask for it."""


class DescribeTopicPartitionsResponse(Response, api_key=75, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    topics: Array[DescribeTopicPartitionsResponseTopic]
    next_cursor: Annotated[Cursor | None, nullable()] = None
    """Null: there are no more."""
