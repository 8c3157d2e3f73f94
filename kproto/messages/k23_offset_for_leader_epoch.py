"""OffsetForLeaderEpoch (API key 23): the end offset of a leader epoch, with which consumers detect truncation."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int16, Int32, Int64, String, Struct, ignorable, since
from kproto.message import Request, Response


class OffsetForLeaderPartition(Struct):
    partition: Int32
    current_leader_epoch: Annotated[Int32, since(2), ignorable] = -1
    leader_epoch: Int32


class OffsetForLeaderTopic(Struct):
    topic: String
    partitions: Array[OffsetForLeaderPartition]


class OffsetForLeaderEpochRequest(Request, api_key=23, versions=(0, 4), flexible=4):
    """v1: layout of v0
    v2: + topics[].partitions[].current_leader_epoch; checked unless -1
    v3: + replica_id
    v4: flexible
    """

    replica_id: Annotated[Int32, since(3), ignorable] = -2
    """-1: a consumer; -2: a reader beyond the high watermark; else the id of the following broker."""
    topics: Array[OffsetForLeaderTopic]


class EpochEndOffset(Struct):
    error_code: Int16
    partition: Int32
    leader_epoch: Annotated[Int32, since(1), ignorable] = -1
    end_offset: Int64 = -1
    """-1: the epoch is unknown."""


class OffsetForLeaderTopicResult(Struct):
    topic: String
    partitions: Array[EpochEndOffset]


class OffsetForLeaderEpochResponse(Response, api_key=23, versions=(0, 4), flexible=4):
    """v1: + topics[].partitions[].leader_epoch
    v2: + throttle_time_ms
    v3: layout of v2
    v4: flexible
    """

    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    topics: Array[OffsetForLeaderTopicResult]
