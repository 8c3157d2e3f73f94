"""AlterPartition (API key 56): the leader of a partition proposes another set of in-sync replicas to the controller."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    ZERO_UUID,
    Array,
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


class BrokerState(Struct):
    broker_id: Int32
    broker_epoch: Int64 = -1


class PartitionData(Struct):
    partition_index: Int32
    leader_epoch: Int32
    new_isr: Annotated[Array[Int32], until(2)] = ()
    new_isr_with_epochs: Annotated[Array[BrokerState], since(3)] = ()
    leader_recovery_state: Annotated[Int8, since(1)] = 0
    partition_epoch: Int32


class TopicData(Struct):
    topic_name: Annotated[String, until(1), ignorable] = ""
    topic_id: Annotated[Uuid, since(2), ignorable] = ZERO_UUID
    partitions: Array[PartitionData]


class AlterPartitionRequest(Request, api_key=56, versions=(0, 3), flexible=0):
    """v1: + topics[].partitions[].leader_recovery_state
    v2: + topics[].topic_id, - topics[].topic_name
    v3: + topics[].partitions[].new_isr_with_epochs, - topics[].partitions[].new_isr
    """

    broker_id: Int32
    broker_epoch: Int64 = -1
    topics: Array[TopicData]


class AlterPartitionResponsePartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    leader_id: Int32
    leader_epoch: Int32
    isr: Array[Int32]
    leader_recovery_state: Annotated[Int8, since(1), ignorable] = 0
    partition_epoch: Int32


class AlterPartitionResponseTopicData(Struct):
    topic_name: Annotated[String, until(1), ignorable] = ""
    topic_id: Annotated[Uuid, since(2), ignorable] = ZERO_UUID
    partitions: Array[AlterPartitionResponsePartitionData]


class AlterPartitionResponse(Response, api_key=56, versions=(0, 3), flexible=0):
    """v1: + topics[].partitions[].leader_recovery_state
    v2: + topics[].topic_id, - topics[].topic_name
    v3: layout of v2
    """

    throttle_time_ms: Int32
    error_code: Int16
    topics: Array[AlterPartitionResponseTopicData]
