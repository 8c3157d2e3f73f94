"""Metadata (API key 3): the brokers, the topics, and the leader of each partition."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    ZERO_UUID,
    Array,
    Bool,
    Int16,
    Int32,
    NullableString,
    String,
    Struct,
    Uuid,
    ignorable,
    nullable,
    only,
    since,
)
from kproto.message import Request, Response


class MetadataRequestTopic(Struct):
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    name: Annotated[String | None, nullable(since(10))]


class MetadataRequest(Request, api_key=3, versions=(0, 13), flexible=9):
    """v0: an empty list of topics asks for all
    v1: topics may be null; null asks for all, an empty list for none
    v2-v3: layout of v1
    v4: + allow_auto_topic_creation
    v5-v7: layout of v4
    v8: + include_cluster_authorized_operations, + include_topic_authorized_operations
    v9: flexible
    v10: + topics[].topic_id, topics[].name may be null
    v11: - include_cluster_authorized_operations
    v12: layout of v11; the request may name topics by id
    v13: layout of v12
    """

    topics: Annotated[Array[MetadataRequestTopic] | None, nullable(since(1))]
    allow_auto_topic_creation: Annotated[Bool, since(4)] = True
    include_cluster_authorized_operations: Annotated[Bool, only(8, 10)] = False
    include_topic_authorized_operations: Annotated[Bool, since(8)] = False


class MetadataResponseBroker(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: Annotated[NullableString, since(1), ignorable] = None


class MetadataResponsePartition(Struct):
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    """-1: none."""
    leader_epoch: Annotated[Int32, since(7), ignorable] = -1
    replica_nodes: Array[Int32]
    isr_nodes: Array[Int32]
    offline_replicas: Annotated[Array[Int32], since(5), ignorable] = ()


class MetadataResponseTopic(Struct):
    error_code: Int16
    name: Annotated[String | None, nullable(since(12))]
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    is_internal: Annotated[Bool, since(1), ignorable] = False
    partitions: Array[MetadataResponsePartition]
    topic_authorized_operations: Annotated[Int32, since(8)] = -2147483648
    """Bit n is ACL operation n; -2147483648 if the request does not ask for it."""


class MetadataResponse(Response, api_key=3, versions=(0, 13), flexible=9, has_slices=True):
    """v1: + brokers[].rack?, + controller_id, + topics[].is_internal
    v2: + cluster_id?
    v3: + throttle_time_ms
    v4: layout of v3
    v5: + topics[].partitions[].offline_replicas
    v6: layout of v5; throttled at the client
    v7: + topics[].partitions[].leader_epoch
    v8: + topics[].topic_authorized_operations, + cluster_authorized_operations
    v9: flexible
    v10: + topics[].topic_id
    v11: - cluster_authorized_operations
    v12: topics[].name may be null
    v13: + error_code; may return REBOOTSTRAP_REQUIRED
    """

    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    brokers: Array[MetadataResponseBroker]
    cluster_id: Annotated[NullableString, since(2), ignorable] = None
    controller_id: Annotated[Int32, since(1), ignorable] = -1
    topics: Array[MetadataResponseTopic]
    cluster_authorized_operations: Annotated[Int32, only(8, 10)] = -2147483648
    """Bit n is ACL operation n; -2147483648 if the request does not ask for it."""
    error_code: Annotated[Int16, since(13), ignorable] = 0
