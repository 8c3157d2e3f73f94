"""WriteShareGroupState (API key 85): the leader of a share partition stores its state."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int8, Int16, Int32, Int64, NullableString, String, Struct, Uuid, ignorable, since
from kproto.message import Request, Response


class StateBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


class PartitionData(Struct):
    partition: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, since(1), ignorable] = -1
    state_batches: Array[StateBatch]


class WriteStateData(Struct):
    topic_id: Uuid
    partitions: Array[PartitionData]


class WriteShareGroupStateRequest(Request, api_key=85, versions=(0, 1), flexible=0):
    """v1: + topics[].partitions[].delivery_complete_count."""

    group_id: String
    topics: Array[WriteStateData]


class PartitionResult(Struct):
    partition: Int32
    error_code: Int16
    error_message: NullableString = None


class WriteStateResult(Struct):
    topic_id: Uuid
    partitions: Array[PartitionResult]


class WriteShareGroupStateResponse(Response, api_key=85, versions=(0, 1), flexible=0):
    """v1: layout of v0."""

    results: Array[WriteStateResult]
