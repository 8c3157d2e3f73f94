"""DeleteShareGroupState (API key 86): the coordinator of a share group removes the state of share partitions."""

from __future__ import annotations

from kproto.declaration import Array, Int16, Int32, NullableString, String, Struct, Uuid
from kproto.message import Request, Response


class PartitionData(Struct):
    partition: Int32


class DeleteStateData(Struct):
    topic_id: Uuid
    partitions: Array[PartitionData]


class DeleteShareGroupStateRequest(Request, api_key=86, versions=(0, 0), flexible=0):
    group_id: String
    topics: Array[DeleteStateData]


class PartitionResult(Struct):
    partition: Int32
    error_code: Int16
    error_message: NullableString = None


class DeleteStateResult(Struct):
    topic_id: Uuid
    partitions: Array[PartitionResult]


class DeleteShareGroupStateResponse(Response, api_key=86, versions=(0, 0), flexible=0):
    results: Array[DeleteStateResult]
