"""TxnOffsetCommit (API key 28): a producer commits a group's offsets; they apply when its transaction commits."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    ZERO_UUID,
    Array,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Struct,
    Uuid,
    ignorable,
    since,
    until,
)
from kproto.message import Request, Response


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(2), ignorable] = -1
    committed_metadata: NullableString


class TxnOffsetCommitRequestTopic(Struct):
    name: Annotated[String, until(5), ignorable] = ""
    topic_id: Annotated[Uuid, since(6), ignorable] = ZERO_UUID
    partitions: Array[TxnOffsetCommitRequestPartition]


class TxnOffsetCommitRequest(Request, api_key=28, versions=(0, 6), flexible=3):
    """v1: layout of v0
    v2: + topics[].partitions[].committed_leader_epoch
    v3: + generation_id_or_member_epoch, + member_id, + group_instance_id?, flexible
    v4: layout of v3
    v5: layout of v4; also does what AddOffsetsToTxn does, under transaction.version 2
    v6: + topics[].topic_id, - topics[].name
    """

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id_or_member_epoch: Annotated[Int32, since(3)] = -1
    """-1: unknown, not checked."""
    member_id: Annotated[String, since(3)] = ""
    group_instance_id: Annotated[NullableString, since(3)] = None
    topics: Array[TxnOffsetCommitRequestTopic]


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class TxnOffsetCommitResponseTopic(Struct):
    name: Annotated[String, until(5), ignorable] = ""
    topic_id: Annotated[Uuid, since(6), ignorable] = ZERO_UUID
    partitions: Array[TxnOffsetCommitResponsePartition]


class TxnOffsetCommitResponse(Response, api_key=28, versions=(0, 6), flexible=3):
    """v1: layout of v0; throttled at the client
    v2: layout of v1
    v3: flexible; may return ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID
    v4: layout of v3; may return TRANSACTION_ABORTABLE
    v5: layout of v4
    v6: + topics[].topic_id, - topics[].name; may return GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_ID and STALE_MEMBER_EPOCH
    """

    throttle_time_ms: Int32
    topics: Array[TxnOffsetCommitResponseTopic]
