"""StopReplica (API key 5): a ZooKeeper-era controller has a broker stop replicas."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Int16, Int32, Int64, String, Struct, ignorable, only, since, until
from kproto.message import Request, Response


class StopReplicaPartitionV0(Struct):
    topic_name: String
    partition_index: Int32


class StopReplicaTopicV1(Struct):
    name: String
    partition_indexes: Array[Int32]


class StopReplicaPartitionState(Struct):
    partition_index: Int32
    leader_epoch: Int32 = -1
    delete_partition: Bool


class StopReplicaTopicState(Struct):
    topic_name: String
    partition_states: Array[StopReplicaPartitionState]


class StopReplicaRequest(Request, api_key=5, versions=(0, 4), flexible=2):
    """v1: + broker_epoch, + topics, - ungrouped_partitions
    v2: flexible
    v3: + topic_states, - delete_partitions, - topics
    v4: + is_k_raft_controller
    """

    controller_id: Int32
    is_k_raft_controller: Annotated[Bool, since(4)] = False
    controller_epoch: Int32
    broker_epoch: Annotated[Int64, since(1), ignorable] = -1
    delete_partitions: Annotated[Bool, until(2)] = False
    ungrouped_partitions: Annotated[Array[StopReplicaPartitionV0], only(0)] = ()
    topics: Annotated[Array[StopReplicaTopicV1], only(1, 2)] = ()
    topic_states: Annotated[Array[StopReplicaTopicState], since(3)] = ()


class StopReplicaPartitionError(Struct):
    topic_name: String
    partition_index: Int32
    error_code: Int16


class StopReplicaResponse(Response, api_key=5, versions=(0, 4), flexible=2):
    """v1: layout of v0
    v2: flexible
    v3-v4: layout of v2
    """

    error_code: Int16
    partition_errors: Array[StopReplicaPartitionError]
