"""AlterShareGroupOffsets (API key 91): an administrator sets the start offsets of a share group."""

from __future__ import annotations

from kproto.declaration import Array, Int16, Int32, Int64, NullableString, String, Struct, Uuid
from kproto.message import Request, Response


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: Int32
    start_offset: Int64


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: String
    partitions: Array[AlterShareGroupOffsetsRequestPartition]


class AlterShareGroupOffsetsRequest(Request, api_key=91, versions=(0, 0), flexible=0):
    group_id: String
    topics: Array[AlterShareGroupOffsetsRequestTopic]


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString = None


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: String
    topic_id: Uuid
    partitions: Array[AlterShareGroupOffsetsResponsePartition]


class AlterShareGroupOffsetsResponse(Response, api_key=91, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    responses: Array[AlterShareGroupOffsetsResponseTopic]
