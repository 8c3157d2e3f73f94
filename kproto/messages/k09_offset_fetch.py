"""OffsetFetch (API key 9): the committed offsets of groups."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    ZERO_UUID,
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Struct,
    Uuid,
    ignorable,
    nullable,
    only,
    since,
    until,
)
from kproto.message import Request, Response


class OffsetFetchRequestTopic(Struct):
    name: String
    partition_indexes: Array[Int32]


class OffsetFetchRequestTopics(Struct):
    name: Annotated[String, until(9), ignorable] = ""
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    partition_indexes: Array[Int32]


class OffsetFetchRequestGroup(Struct):
    group_id: String
    member_id: Annotated[NullableString, since(9), ignorable] = None
    member_epoch: Annotated[Int32, since(9), ignorable] = -1
    """-1: the request is not from a group member."""
    topics: Annotated[Array[OffsetFetchRequestTopics] | None, nullable()]


class OffsetFetchRequest(Request, api_key=9, versions=(0, 10), flexible=6):
    """v0: read from ZooKeeper
    v1: layout of v0; from __consumer_offsets, not ZooKeeper
    v2: topics may be null; null asks for all
    v3-v5: layout of v2
    v6: flexible
    v7: + require_stable
    v8: + groups, - group_id, - topics; several groups in one request
    v9: + groups[].member_id?, + groups[].member_epoch; for members of KIP-848 groups
    v10: + groups[].topics[].topic_id, - groups[].topics[].name
    """

    group_id: Annotated[String, until(7)] = ""
    topics: Annotated[Array[OffsetFetchRequestTopic] | None, until(7), nullable(since(2))] = ()
    groups: Annotated[Array[OffsetFetchRequestGroup], since(8)] = ()
    require_stable: Annotated[Bool, since(7)] = False
    """UNSTABLE_OFFSET_COMMIT while a transaction has pending offsets."""


class OffsetFetchResponsePartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    """-1: none."""
    committed_leader_epoch: Annotated[Int32, since(5), ignorable] = -1
    metadata: NullableString
    error_code: Int16


class OffsetFetchResponseTopic(Struct):
    name: String
    partitions: Array[OffsetFetchResponsePartition]


class OffsetFetchResponsePartitions(Struct):
    partition_index: Int32
    committed_offset: Int64
    """-1: none."""
    committed_leader_epoch: Int32 = -1
    metadata: NullableString
    error_code: Int16


class OffsetFetchResponseTopics(Struct):
    name: Annotated[String, until(9), ignorable] = ""
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    partitions: Array[OffsetFetchResponsePartitions]


class OffsetFetchResponseGroup(Struct):
    group_id: String
    topics: Array[OffsetFetchResponseTopics]
    error_code: Int16 = 0


class OffsetFetchResponse(Response, api_key=9, versions=(0, 10), flexible=6, has_slices=True):
    """v1: layout of v0
    v2: + error_code; for errors of the group
    v3: + throttle_time_ms
    v4: layout of v3; throttled at the client
    v5: + topics[].partitions[].committed_leader_epoch
    v6: flexible
    v7: layout of v6; may return UNSTABLE_OFFSET_COMMIT
    v8: + groups, - topics, - error_code
    v9: layout of v8; may return UNKNOWN_MEMBER_ID and STALE_MEMBER_EPOCH
    v10: + groups[].topics[].topic_id, - groups[].topics[].name; may return UNKNOWN_TOPIC_ID
    """

    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    topics: Annotated[Array[OffsetFetchResponseTopic], until(7)] = ()
    error_code: Annotated[Int16, only(2, 7), ignorable] = 0
    groups: Annotated[Array[OffsetFetchResponseGroup], since(8)] = ()
