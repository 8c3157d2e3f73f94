"""DescribeShareGroupOffsets (API key 90): the start offsets of share groups in their partitions."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    Array,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Struct,
    Uuid,
    ignorable,
    nullable,
    since,
)
from kproto.message import Request, Response


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: String
    partitions: Array[Int32]


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: String
    topics: Annotated[Array[DescribeShareGroupOffsetsRequestTopic] | None, nullable()]


class DescribeShareGroupOffsetsRequest(Request, api_key=90, versions=(0, 1), flexible=0):
    """v1: layout of v0."""

    groups: Array[DescribeShareGroupOffsetsRequestGroup]


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32
    start_offset: Int64
    leader_epoch: Int32
    lag: Annotated[Int64, since(1), ignorable] = -1
    error_code: Int16
    error_message: NullableString = None


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: String
    topic_id: Uuid
    partitions: Array[DescribeShareGroupOffsetsResponsePartition]


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: String
    topics: Array[DescribeShareGroupOffsetsResponseTopic]
    error_code: Int16
    error_message: NullableString = None


class DescribeShareGroupOffsetsResponse(Response, api_key=90, versions=(0, 1), flexible=0, has_slices=True):
    """v1: + groups[].topics[].partitions[].lag."""

    throttle_time_ms: Int32
    groups: Array[DescribeShareGroupOffsetsResponseGroup]
