"""ReadShareGroupState (API key 84): the leader of a share partition loads its state."""

from __future__ import annotations

from kproto.declaration import Array, Int8, Int16, Int32, Int64, NullableString, String, Struct, Uuid
from kproto.message import Request, Response


class PartitionData(Struct):
    partition: Int32
    leader_epoch: Int32


class ReadStateData(Struct):
    topic_id: Uuid
    partitions: Array[PartitionData]


class ReadShareGroupStateRequest(Request, api_key=84, versions=(0, 0), flexible=0):
    group_id: String
    topics: Array[ReadStateData]


class StateBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    """0: available; 2: acknowledged; 4: archived."""
    delivery_count: Int16


class PartitionResult(Struct):
    partition: Int32
    error_code: Int16
    error_message: NullableString = None
    state_epoch: Int32
    start_offset: Int64
    state_batches: Array[StateBatch]


class ReadStateResult(Struct):
    topic_id: Uuid
    partitions: Array[PartitionResult]


class ReadShareGroupStateResponse(Response, api_key=84, versions=(0, 0), flexible=0):
    results: Array[ReadStateResult]
