"""UpdateMetadata (API key 6): a ZooKeeper-era controller sends brokers the content of their Metadata responses."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    ZERO_UUID,
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
    only,
    since,
    tag,
    until,
)
from kproto.message import Request, Response


class UpdateMetadataPartitionState(Struct):
    topic_name: Annotated[String, until(4), ignorable] = ""
    partition_index: Int32
    controller_epoch: Int32
    leader: Int32
    leader_epoch: Int32
    isr: Array[Int32]
    zk_version: Int32
    replicas: Array[Int32]
    offline_replicas: Annotated[Array[Int32], since(4), ignorable] = ()


class UpdateMetadataTopicState(Struct):
    topic_name: String
    topic_id: Annotated[Uuid, since(7), ignorable] = ZERO_UUID
    partition_states: Array[UpdateMetadataPartitionState]


class UpdateMetadataEndpoint(Struct):
    port: Int32
    host: String
    listener: Annotated[String, since(3), ignorable] = ""
    security_protocol: Int16


class UpdateMetadataBroker(Struct):
    id: Int32
    v0_host: Annotated[String, only(0), ignorable] = ""
    v0_port: Annotated[Int32, only(0), ignorable] = 0
    endpoints: Annotated[Array[UpdateMetadataEndpoint], since(1), ignorable] = ()
    rack: Annotated[NullableString, since(2), ignorable] = ""


class UpdateMetadataRequest(Request, api_key=6, versions=(0, 8), flexible=6):
    """v1: + live_brokers[].endpoints, - live_brokers[].v0_host, - live_brokers[].v0_port
    v2: + live_brokers[].rack?
    v3: + live_brokers[].endpoints[].listener
    v4: + ungrouped_partition_states[].offline_replicas
    v5: + broker_epoch, + topic_states, - ungrouped_partition_states
    v6: flexible
    v7: + topic_states[].topic_id
    v8: + is_k_raft_controller, + type (tagged)
    """

    controller_id: Int32
    is_k_raft_controller: Annotated[Bool, since(8)] = False
    type: Annotated[Int8, since(8), tag(0)] = 0
    controller_epoch: Int32
    broker_epoch: Annotated[Int64, since(5), ignorable] = -1
    ungrouped_partition_states: Annotated[Array[UpdateMetadataPartitionState], until(4)] = ()
    topic_states: Annotated[Array[UpdateMetadataTopicState], since(5)] = ()
    live_brokers: Array[UpdateMetadataBroker]


class UpdateMetadataResponse(Response, api_key=6, versions=(0, 8), flexible=6):
    """v1-v5: layout of v0
    v6: flexible
    v7-v8: layout of v6
    """

    error_code: Int16
