"""ListOffsets (API key 2)."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    String,
    Struct,
    ignorable,
    only,
    since,
)


class ListOffsetsPartition(Struct):
    partition_index: Int32
    current_leader_epoch: Annotated[Int32, since(4), ignorable] = -1
    timestamp: Int64
    max_num_offsets: Annotated[Int32, only(0)] = 1


class ListOffsetsTopic(Struct):
    name: String
    partitions: Array[ListOffsetsPartition]


class ListOffsetsRequest(Request, api_key=2, versions=(0, 11), flexible=6):
    """v1: - topics[].partitions[].max_num_offsets
    v2: + isolation_level
    v3: layout of v2
    v4: + topics[].partitions[].current_leader_epoch
    v5: layout of v4
    v6: flexible
    v7-v9: layout of v6
    v10: + timeout_ms
    v11: layout of v10
    """

    replica_id: Int32
    isolation_level: Annotated[Int8, since(2)] = 0
    topics: Array[ListOffsetsTopic]
    timeout_ms: Annotated[Int32, since(10), ignorable] = 0


class ListOffsetsPartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    old_style_offsets: Annotated[Array[Int64], only(0)] = ()
    timestamp: Annotated[Int64, since(1)] = -1
    offset: Annotated[Int64, since(1)] = -1
    leader_epoch: Annotated[Int32, since(4)] = -1


class ListOffsetsTopicResponse(Struct):
    name: String
    partitions: Array[ListOffsetsPartitionResponse]


class ListOffsetsResponse(Response, api_key=2, versions=(0, 11), flexible=6):
    """v1: + topics[].partitions[].timestamp, + topics[].partitions[].offset, -
          topics[].partitions[].old_style_offsets
    v2: + throttle_time_ms
    v3: layout of v2
    v4: + topics[].partitions[].leader_epoch
    v5: layout of v4
    v6: flexible
    v7-v11: layout of v6
    """

    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    topics: Array[ListOffsetsTopicResponse]
