"""DescribeProducers (API key 61): the active producers of partitions, from their leaders."""

from __future__ import annotations

from kproto.declaration import Array, Int16, Int32, Int64, NullableString, String, Struct
from kproto.message import Request, Response


class TopicRequest(Struct):
    name: String
    partition_indexes: Array[Int32]


class DescribeProducersRequest(Request, api_key=61, versions=(0, 0), flexible=0):
    topics: Array[TopicRequest]


class ProducerState(Struct):
    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString = None
    active_producers: Array[ProducerState]


class TopicResponse(Struct):
    name: String
    partitions: Array[PartitionResponse]


class DescribeProducersResponse(Response, api_key=61, versions=(0, 0), flexible=0, has_slices=True):
    throttle_time_ms: Int32
    topics: Array[TopicResponse]
