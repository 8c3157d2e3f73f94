"""InitializeShareGroupState (API key 83): the coordinator of a share group creates the state of share partitions."""

from __future__ import annotations

from kproto.declaration import Array, Int16, Int32, Int64, NullableString, String, Struct, Uuid
from kproto.message import Request, Response


class PartitionData(Struct):
    partition: Int32
    state_epoch: Int32
    start_offset: Int64


class InitializeStateData(Struct):
    topic_id: Uuid
    partitions: Array[PartitionData]


class InitializeShareGroupStateRequest(Request, api_key=83, versions=(0, 0), flexible=0):
    group_id: String
    topics: Array[InitializeStateData]


class PartitionResult(Struct):
    partition: Int32
    error_code: Int16
    error_message: NullableString = None


class InitializeStateResult(Struct):
    topic_id: Uuid
    partitions: Array[PartitionResult]


class InitializeShareGroupStateResponse(Response, api_key=83, versions=(0, 0), flexible=0):
    results: Array[InitializeStateResult]
