"""Fetch (API key 1): a consumer, or a replica that follows, reads records."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    ZERO_UUID,
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableRecords,
    NullableString,
    String,
    Struct,
    Uuid,
    ignorable,
    nullable,
    since,
    tag,
    until,
)
from kproto.message import Request, Response


class ReplicaState(Struct):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Struct):
    partition: Int32
    current_leader_epoch: Annotated[Int32, since(9), ignorable] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1
    partition_max_bytes: Int32
    replica_directory_id: Annotated[Uuid, since(17), tag(0), ignorable] = ZERO_UUID
    high_watermark: Annotated[Int64, since(18), tag(1), ignorable] = 9223372036854775807


class FetchTopic(Struct):
    topic: Annotated[String, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partitions: Array[FetchPartition]


class ForgottenTopic(Struct):
    topic: Annotated[String, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partitions: Array[Int32]


class FetchRequest(Request, api_key=1, versions=(0, 18), flexible=12):
    """v1: layout of v0
    v2: layout of v1; accepts message format 1, with timestamps
    v3: + max_bytes; partitions are read in the order given
    v4: + isolation_level; accepts record batches (format 2)
    v5: + topics[].partitions[].log_start_offset
    v6: layout of v5
    v7: + session_id, + session_epoch, + forgotten_topics_data; fetch sessions (KIP-227)
    v8: layout of v7
    v9: + topics[].partitions[].current_leader_epoch; checked unless -1
    v10: layout of v9; accepts zstd
    v11: + rack_id
    v12: + cluster_id? (tagged), + topics[].partitions[].last_fetched_epoch, flexible
    v13: + topics[].topic_id, + forgotten_topics_data[].topic_id, - topics[].topic, - forgotten_topics_data[].topic
    v14: layout of v13
    v15: + replica_state (tagged), - replica_id
    v16: layout of v15
    v17: + topics[].partitions[].replica_directory_id (tagged)
    v18: + topics[].partitions[].high_watermark (tagged)
    """

    cluster_id: Annotated[NullableString, since(12), tag(0), ignorable] = None
    replica_id: Annotated[Int32, until(14)] = -1
    """-1: a consumer; else the id of the following broker."""
    replica_state: Annotated[ReplicaState, since(15), tag(1)] = ReplicaState()
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Annotated[Int32, since(3), ignorable] = 2147483647
    isolation_level: Annotated[Int8, since(4), ignorable] = 0
    """0: read uncommitted; 1: read committed."""
    session_id: Annotated[Int32, since(7), ignorable] = 0
    """0: no session, or a new one."""
    session_epoch: Annotated[Int32, since(7), ignorable] = -1
    """-1: no session, or close it; 0: a new session."""
    topics: Array[FetchTopic]
    forgotten_topics_data: Annotated[Array[ForgottenTopic], since(7)] = ()
    rack_id: Annotated[String, since(11), ignorable] = ""


class EpochEndOffset(Struct):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(Struct):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Struct):
    producer_id: Int64
    first_offset: Int64


class PartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Annotated[Int64, since(4), ignorable] = -1
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1
    diverging_epoch: Annotated[EpochEndOffset, since(12), tag(0)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, since(12), tag(1)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, since(12), tag(2)] = SnapshotId()
    aborted_transactions: Annotated[Array[AbortedTransaction] | None, since(4), nullable(), ignorable] = ()
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    """-1: the leader."""
    records: NullableRecords


class FetchableTopicResponse(Struct):
    topic: Annotated[String, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partitions: Array[PartitionData]


class NodeEndpoint(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class FetchResponse(Response, api_key=1, versions=(0, 18), flexible=12):
    """v1: + throttle_time_ms
    v2-v3: layout of v1
    v4: + responses[].partitions[].last_stable_offset, + responses[].partitions[].aborted_transactions?
    v5: + responses[].partitions[].log_start_offset
    v6: layout of v5; may return KAFKA_STORAGE_ERROR
    v7: + error_code, + session_id
    v8: layout of v7; throttled at the client
    v9-v10: layout of v8
    v11: + responses[].partitions[].preferred_read_replica
    v12: + responses[].partitions[].diverging_epoch (tagged), + responses[].partitions[].current_leader (tagged),
          + responses[].partitions[].snapshot_id (tagged), flexible
    v13: + responses[].topic_id, - responses[].topic; may return UNKNOWN_TOPIC_ID
    v14: layout of v13; may return OFFSET_MOVED_TO_TIERED_STORAGE
    v15: layout of v14
    v16: + node_endpoints (tagged)
    v17-v18: layout of v16
    """

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Annotated[Int16, since(7), ignorable] = 0
    session_id: Annotated[Int32, since(7)] = 0
    responses: Array[FetchableTopicResponse]
    node_endpoints: Annotated[Array[NodeEndpoint], since(16), tag(0)] = ()
