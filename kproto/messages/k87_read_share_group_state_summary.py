"""ReadShareGroupStateSummary (API key 87): the start offsets of share partitions, without the rest of their state."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int16, Int32, Int64, NullableString, String, Struct, Uuid, ignorable, since
from kproto.message import Request, Response


class PartitionData(Struct):
    partition: Int32
    leader_epoch: Int32


class ReadStateSummaryData(Struct):
    topic_id: Uuid
    partitions: Array[PartitionData]


class ReadShareGroupStateSummaryRequest(Request, api_key=87, versions=(0, 1), flexible=0):
    """v1: layout of v0."""

    group_id: String
    topics: Array[ReadStateSummaryData]


class PartitionResult(Struct):
    partition: Int32
    error_code: Int16
    error_message: NullableString = None
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, since(1), ignorable] = -1


class ReadStateSummaryResult(Struct):
    topic_id: Uuid
    partitions: Array[PartitionResult]


class ReadShareGroupStateSummaryResponse(Response, api_key=87, versions=(0, 1), flexible=0):
    """v1: + results[].partitions[].delivery_complete_count."""

    results: Array[ReadStateSummaryResult]
