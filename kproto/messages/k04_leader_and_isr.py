"""LeaderAndIsr (API key 4): a ZooKeeper-era controller assigns brokers the partitions that they lead or follow."""

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
    String,
    Struct,
    Uuid,
    ignorable,
    since,
    until,
)
from kproto.message import Request, Response


class LeaderAndIsrPartitionState(Struct):
    topic_name: Annotated[String, until(1), ignorable] = ""
    partition_index: Int32
    controller_epoch: Int32
    leader: Int32
    leader_epoch: Int32
    isr: Array[Int32]
    partition_epoch: Int32
    replicas: Array[Int32]
    adding_replicas: Annotated[Array[Int32], since(3), ignorable] = ()
    removing_replicas: Annotated[Array[Int32], since(3), ignorable] = ()
    is_new: Annotated[Bool, since(1), ignorable] = False
    leader_recovery_state: Annotated[Int8, since(6)] = 0


class LeaderAndIsrTopicState(Struct):
    topic_name: String
    topic_id: Annotated[Uuid, since(5), ignorable] = ZERO_UUID
    partition_states: Array[LeaderAndIsrPartitionState]


class LeaderAndIsrLiveLeader(Struct):
    broker_id: Int32
    host_name: String
    port: Int32


class LeaderAndIsrRequest(Request, api_key=4, versions=(0, 7), flexible=4):
    """v1: + ungrouped_partition_states[].is_new
    v2: + broker_epoch, + topic_states, - ungrouped_partition_states
    v3: + topic_states[].partition_states[].adding_replicas, + topic_states[].partition_states[].removing_replicas
    v4: flexible
    v5: + type, + topic_states[].topic_id
    v6: + topic_states[].partition_states[].leader_recovery_state
    v7: + is_k_raft_controller
    """

    controller_id: Int32
    is_k_raft_controller: Annotated[Bool, since(7)] = False
    controller_epoch: Int32
    broker_epoch: Annotated[Int64, since(2), ignorable] = -1
    type: Annotated[Int8, since(5)] = 0
    ungrouped_partition_states: Annotated[Array[LeaderAndIsrPartitionState], until(1)] = ()
    topic_states: Annotated[Array[LeaderAndIsrTopicState], since(2)] = ()
    live_leaders: Array[LeaderAndIsrLiveLeader]


class LeaderAndIsrPartitionError(Struct):
    topic_name: Annotated[String, until(4), ignorable] = ""
    partition_index: Int32
    error_code: Int16


class LeaderAndIsrTopicError(Struct):
    topic_id: Uuid
    partition_errors: Array[LeaderAndIsrPartitionError]


class LeaderAndIsrResponse(Response, api_key=4, versions=(0, 7), flexible=4):
    """v1-v3: layout of v0
    v4: flexible
    v5: + topics, - partition_errors
    v6-v7: layout of v5
    """

    error_code: Int16
    partition_errors: Annotated[Array[LeaderAndIsrPartitionError], until(4)] = ()
    topics: Annotated[Array[LeaderAndIsrTopicError], since(5)] = ()
