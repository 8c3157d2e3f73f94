"""ShareFetch (API key 78): a member of a share group acquires records, and may acknowledge earlier ones."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableString,
    Records,
    String,
    Struct,
    Uuid,
    ignorable,
    since,
)
from kproto.message import Request, Response


class AcknowledgementBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: Array[Int8]
    """One for each record, or one for all: 0: gap; 1: accept; 2: release; 3: reject; 4: renew (v2)."""


class FetchPartition(Struct):
    partition_index: Int32
    acknowledgement_batches: Array[AcknowledgementBatch]


class FetchTopic(Struct):
    topic_id: Uuid
    partitions: Array[FetchPartition]


class ForgottenTopic(Struct):
    topic_id: Uuid
    partitions: Array[Int32]


class ShareFetchRequest(Request, api_key=78, versions=(1, 2), flexible=0):
    """v2: + share_acquire_mode, + is_renew_ack."""

    group_id: NullableString = None
    member_id: NullableString
    share_session_epoch: Int32
    """0: open a session; -1: close it."""
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2147483647
    max_records: Int32
    batch_size: Int32
    share_acquire_mode: Annotated[Int8, since(2), ignorable] = 0
    is_renew_ack: Annotated[Bool, since(2)] = False
    topics: Array[FetchTopic]
    forgotten_topics_data: Array[ForgottenTopic]


class LeaderIdAndEpoch(Struct):
    leader_id: Int32
    leader_epoch: Int32


class AcquiredRecords(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_count: Int16


class PartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString = None
    acknowledge_error_code: Int16
    acknowledge_error_message: NullableString = None
    current_leader: LeaderIdAndEpoch
    records: Records
    acquired_records: Array[AcquiredRecords]


class ShareFetchableTopicResponse(Struct):
    topic_id: Uuid
    partitions: Array[PartitionData]


class NodeEndpoint(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class ShareFetchResponse(Response, api_key=78, versions=(1, 2), flexible=0):
    """v2: layout of v1."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    acquisition_lock_timeout_ms: Int32
    responses: Array[ShareFetchableTopicResponse]
    node_endpoints: Array[NodeEndpoint]
