"""OffsetDelete (API key 47): an administrator removes a group's offsets of topics to which it is not subscribed."""

from __future__ import annotations

from kproto.declaration import Array, Int16, Int32, String, Struct
from kproto.message import Request, Response


class OffsetDeleteRequestPartition(Struct):
    partition_index: Int32


class OffsetDeleteRequestTopic(Struct):
    name: String
    partitions: Array[OffsetDeleteRequestPartition]


class OffsetDeleteRequest(Request, api_key=47, versions=(0, 0)):
    group_id: String
    topics: Array[OffsetDeleteRequestTopic]


class OffsetDeleteResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class OffsetDeleteResponseTopic(Struct):
    name: String
    partitions: Array[OffsetDeleteResponsePartition]


class OffsetDeleteResponse(Response, api_key=47, versions=(0, 0)):
    error_code: Int16
    throttle_time_ms: Int32
    topics: Array[OffsetDeleteResponseTopic]
