"""DeleteRecords (API key 21): an administrator deletes the records before an offset."""

from __future__ import annotations

from kproto.declaration import Array, Int16, Int32, Int64, String, Struct
from kproto.message import Request, Response


class DeleteRecordsPartition(Struct):
    partition_index: Int32
    offset: Int64
    """-1: the high watermark."""


class DeleteRecordsTopic(Struct):
    name: String
    partitions: Array[DeleteRecordsPartition]


class DeleteRecordsRequest(Request, api_key=21, versions=(0, 2), flexible=2):
    """v1: layout of v0
    v2: flexible
    """

    topics: Array[DeleteRecordsTopic]
    timeout_ms: Int32


class DeleteRecordsPartitionResult(Struct):
    partition_index: Int32
    low_watermark: Int64
    error_code: Int16


class DeleteRecordsTopicResult(Struct):
    name: String
    partitions: Array[DeleteRecordsPartitionResult]


class DeleteRecordsResponse(Response, api_key=21, versions=(0, 2), flexible=2):
    """v1: layout of v0; throttled at the client
    v2: flexible
    """

    throttle_time_ms: Int32
    topics: Array[DeleteRecordsTopicResult]
