"""Produce (API key 0): a producer appends records to partitions."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    ZERO_UUID,
    Array,
    Int16,
    Int32,
    Int64,
    NullableRecords,
    NullableString,
    String,
    Struct,
    Uuid,
    ignorable,
    since,
    tag,
    until,
)
from kproto.message import Request, Response


class PartitionProduceData(Struct):
    index: Int32
    records: NullableRecords


class TopicProduceData(Struct):
    name: Annotated[String, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partition_data: Array[PartitionProduceData]


class ProduceRequest(Request, api_key=0, versions=(0, 13), flexible=9):
    """v1: layout of v0
    v2: layout of v1; records may be of message format 1, with timestamps
    v3: + transactional_id?; record batches (format 2)
    v4-v6: layout of v3
    v7: layout of v6; zstd is allowed
    v8: layout of v7
    v9: flexible
    v10-v11: layout of v9
    v12: layout of v11; also does what AddPartitionsToTxn does, under transaction.version 2
    v13: + topic_data[].topic_id, - topic_data[].name
    """

    transactional_id: Annotated[NullableString, since(3)] = None
    acks: Int16
    """0: no response; 1: the leader has the records; -1: all in-sync replicas have them."""
    timeout_ms: Int32
    """How long the leader waits for its replicas."""
    topic_data: Array[TopicProduceData]


class BatchIndexAndErrorMessage(Struct):
    batch_index: Int32
    batch_index_error_message: NullableString = None


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class PartitionProduceResponse(Struct):
    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Annotated[Int64, since(2), ignorable] = -1
    """-1 unless the topic has append time."""
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1
    record_errors: Annotated[Array[BatchIndexAndErrorMessage], since(8), ignorable] = ()
    error_message: Annotated[NullableString, since(8), ignorable] = None
    current_leader: Annotated[LeaderIdAndEpoch, since(10), tag(0)] = LeaderIdAndEpoch()


class TopicProduceResponse(Struct):
    name: Annotated[String, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partition_responses: Array[PartitionProduceResponse]


class NodeEndpoint(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class ProduceResponse(Response, api_key=0, versions=(0, 13), flexible=9):
    """v1: + throttle_time_ms
    v2: + responses[].partition_responses[].log_append_time_ms
    v3: layout of v2
    v4: layout of v3; may return KAFKA_STORAGE_ERROR
    v5: + responses[].partition_responses[].log_start_offset
    v6: layout of v5; throttled at the client
    v7: layout of v6
    v8: + responses[].partition_responses[].record_errors, + responses[].partition_responses[].error_message?
    v9: flexible
    v10: + responses[].partition_responses[].current_leader (tagged), + node_endpoints (tagged)
    v11: layout of v10; may return TRANSACTION_ABORTABLE
    v12: layout of v11
    v13: + responses[].topic_id, - responses[].name; may return UNKNOWN_TOPIC_ID
    """

    responses: Array[TopicProduceResponse]
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    node_endpoints: Annotated[Array[NodeEndpoint], since(10), tag(0)] = ()
