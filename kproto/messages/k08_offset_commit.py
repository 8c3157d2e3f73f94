"""OffsetCommit (API key 8): a group commits its offsets."""

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
    only,
    since,
    until,
)
from kproto.message import Request, Response


class OffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(6), ignorable] = -1
    commit_timestamp: Annotated[Int64, only(1)] = -1
    """Milliseconds since the epoch; -1: the broker's time."""
    committed_metadata: NullableString


class OffsetCommitRequestTopic(Struct):
    name: Annotated[String, until(9), ignorable] = ""
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    partitions: Array[OffsetCommitRequestPartition]


class OffsetCommitRequest(Request, api_key=8, versions=(0, 10), flexible=8):
    """v0: stored in ZooKeeper
    v1: + generation_id_or_member_epoch, + member_id, + topics[].partitions[].commit_timestamp; kept in
          __consumer_offsets, and membership is checked
    v2: + retention_time_ms, - topics[].partitions[].commit_timestamp
    v3-v4: layout of v2
    v5: - retention_time_ms; only the broker's setting decides how long offsets are retained
    v6: + topics[].partitions[].committed_leader_epoch
    v7: + group_instance_id?
    v8: flexible
    v9: layout of v8; the generation may be a KIP-848 member epoch
    v10: + topics[].topic_id, - topics[].name
    """

    group_id: String
    generation_id_or_member_epoch: Annotated[Int32, since(1), ignorable] = -1
    """Negative: the commit is not from a group member."""
    member_id: Annotated[String, since(1), ignorable] = ""
    group_instance_id: Annotated[NullableString, since(7)] = None
    retention_time_ms: Annotated[Int64, only(2, 4), ignorable] = -1
    """How long the offsets are retained; -1: the broker's offsets.retention.minutes."""
    topics: Array[OffsetCommitRequestTopic]


class OffsetCommitRequestKip211(Request, api_key=8, versions=(4, 4)):
    """Version 4 as KIP-211 declares it, without retention_time_ms.

    Released Kafka used version 4 for another change and dropped the field in version 5, so every real client of version
    4 sends the layout of `OffsetCommitRequest`; `kproto.offset_commit_v4` distinguishes the two (D1, OC-3).
    """

    group_id: String
    generation_id_or_member_epoch: Int32 = -1
    member_id: String = ""
    topics: Array[OffsetCommitRequestTopic]


class OffsetCommitResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class OffsetCommitResponseTopic(Struct):
    name: Annotated[String, until(9), ignorable] = ""
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    partitions: Array[OffsetCommitResponsePartition]


class OffsetCommitResponse(Response, api_key=8, versions=(0, 10), flexible=8):
    """v1-v2: layout of v0
    v3: + throttle_time_ms
    v4: layout of v3; throttled at the client
    v5-v6: layout of v4
    v7: layout of v6; may return FENCED_INSTANCE_ID
    v8: flexible
    v9: layout of v8; may return GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH
    v10: + topics[].topic_id, - topics[].name; may return UNKNOWN_TOPIC_ID
    """

    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    topics: Array[OffsetCommitResponseTopic]
