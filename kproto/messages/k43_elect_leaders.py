"""ElectLeaders (API key 43): an administrator has leaders of partitions elected."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int8, Int16, Int32, NullableString, String, Struct, nullable, since
from kproto.message import Request, Response


class TopicPartitions(Struct):
    topic: String
    partitions: Array[Int32]


class ElectLeadersRequest(Request, api_key=43, versions=(0, 2), flexible=2):
    """v1: + election_type
    v2: flexible
    """

    election_type: Annotated[Int8, since(1)] = 0
    """0: the preferred replica; 1: any live replica if none is in sync (records may be lost)."""
    topic_partitions: Annotated[Array[TopicPartitions] | None, nullable()]
    """Null: all."""
    timeout_ms: Int32 = 60000


class PartitionResult(Struct):
    partition_id: Int32
    error_code: Int16
    error_message: NullableString


class ReplicaElectionResult(Struct):
    topic: String
    partition_result: Array[PartitionResult]


class ElectLeadersResponse(Response, api_key=43, versions=(0, 2), flexible=2, has_slices=True):
    """v1: + error_code
    v2: flexible
    """

    throttle_time_ms: Int32
    error_code: Annotated[Int16, since(1)] = 0
    replica_election_results: Array[ReplicaElectionResult]
