"""ShareAcknowledge (API key 79): a member of a share group acknowledges, releases or rejects acquired records."""

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


class AcknowledgePartition(Struct):
    partition_index: Int32
    acknowledgement_batches: Array[AcknowledgementBatch]


class AcknowledgeTopic(Struct):
    topic_id: Uuid
    partitions: Array[AcknowledgePartition]


class ShareAcknowledgeRequest(Request, api_key=79, versions=(1, 2), flexible=0):
    """v2: + is_renew_ack."""

    group_id: NullableString = None
    member_id: NullableString
    share_session_epoch: Int32
    """-1: close the session."""
    is_renew_ack: Annotated[Bool, since(2)] = False
    topics: Array[AcknowledgeTopic]


class LeaderIdAndEpoch(Struct):
    leader_id: Int32
    leader_epoch: Int32


class PartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString = None
    current_leader: LeaderIdAndEpoch


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid
    partitions: Array[PartitionData]


class NodeEndpoint(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class ShareAcknowledgeResponse(Response, api_key=79, versions=(1, 2), flexible=0):
    """v2: + acquisition_lock_timeout_ms."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    acquisition_lock_timeout_ms: Annotated[Int32, since(2), ignorable] = 0
    responses: Array[ShareAcknowledgeTopicResponse]
    node_endpoints: Array[NodeEndpoint]
