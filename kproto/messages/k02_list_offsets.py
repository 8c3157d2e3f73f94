"""ListOffsets (API key 2): offsets of a partition: its start, its end, or the first at or after a timestamp."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int8, Int16, Int32, Int64, String, Struct, ignorable, only, since
from kproto.message import Request, Response


class ListOffsetsPartition(Struct):
    partition_index: Int32
    current_leader_epoch: Annotated[Int32, since(4), ignorable] = -1
    timestamp: Int64
    """Milliseconds since the epoch: the first record at or after them. Else, by number:

    -1: the end; -2: the beginning; -3: the record of the greatest timestamp; -4: the beginning of what is on the
    leader's disk; -5: the last offset in tiered storage; -6: the first that is not there yet.
    """
    max_num_offsets: Annotated[Int32, only(0)] = 1


class ListOffsetsTopic(Struct):
    name: String
    partitions: Array[ListOffsetsPartition]


class ListOffsetsRequest(Request, api_key=2, versions=(0, 11), flexible=6):
    """v1: - topics[].partitions[].max_num_offsets; one offset for a partition, not a list
    v2: + isolation_level
    v3: layout of v2
    v4: + topics[].partitions[].current_leader_epoch; checked unless -1
    v5: layout of v4
    v6: flexible
    v7: layout of v6; timestamp -3
    v8: layout of v7; timestamp -4
    v9: layout of v8; timestamp -5
    v10: + timeout_ms
    v11: layout of v10; timestamp -6
    """

    replica_id: Int32
    """-1: a consumer; else the id of the following broker."""
    isolation_level: Annotated[Int8, since(2)] = 0
    """0: read uncommitted; 1: read committed."""
    topics: Array[ListOffsetsTopic]
    timeout_ms: Annotated[Int32, since(10), ignorable] = 0
    """How long reads of tiered storage may take."""


class ListOffsetsPartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    old_style_offsets: Annotated[Array[Int64], only(0)] = ()
    timestamp: Annotated[Int64, since(1)] = -1
    """The timestamp of the record; -1 for the other offsets."""
    offset: Annotated[Int64, since(1)] = -1
    """-1: no such record."""
    leader_epoch: Annotated[Int32, since(4)] = -1


class ListOffsetsTopicResponse(Struct):
    name: String
    partitions: Array[ListOffsetsPartitionResponse]


class ListOffsetsResponse(Response, api_key=2, versions=(0, 11), flexible=6):
    """v1: + topics[].partitions[].timestamp, + topics[].partitions[].offset,
          - topics[].partitions[].old_style_offsets
    v2: + throttle_time_ms
    v3: layout of v2; throttled at the client
    v4: + topics[].partitions[].leader_epoch
    v5: layout of v4; may return OFFSET_NOT_AVAILABLE
    v6: flexible
    v7-v11: layout of v6
    """

    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    topics: Array[ListOffsetsTopicResponse]
