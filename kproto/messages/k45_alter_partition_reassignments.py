"""AlterPartitionReassignments (API key 45): an administrator moves partitions to other brokers, or cancels a move."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Int16, Int32, NullableString, String, Struct, ignorable, nullable, since
from kproto.message import Request, Response


class ReassignablePartition(Struct):
    partition_index: Int32
    replicas: Annotated[Array[Int32] | None, nullable()] = None
    """Null: the move is canceled."""


class ReassignableTopic(Struct):
    name: String
    partitions: Array[ReassignablePartition]


class AlterPartitionReassignmentsRequest(Request, api_key=45, versions=(0, 1), flexible=0):
    """v1: + allow_replication_factor_change."""

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Annotated[Bool, since(1)] = True
    topics: Array[ReassignableTopic]


class ReassignablePartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString


class ReassignableTopicResponse(Struct):
    name: String
    partitions: Array[ReassignablePartitionResponse]


class AlterPartitionReassignmentsResponse(Response, api_key=45, versions=(0, 1), flexible=0):
    """v1: + allow_replication_factor_change."""

    throttle_time_ms: Int32
    allow_replication_factor_change: Annotated[Bool, since(1), ignorable] = True
    error_code: Int16
    error_message: NullableString
    responses: Array[ReassignableTopicResponse]
