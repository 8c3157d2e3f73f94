"""ListPartitionReassignments (API key 46): the partitions that are moving to other brokers."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int16, Int32, NullableString, String, Struct, nullable
from kproto.message import Request, Response


class ListPartitionReassignmentsTopics(Struct):
    name: String
    partition_indexes: Array[Int32]


class ListPartitionReassignmentsRequest(Request, api_key=46, versions=(0, 0), flexible=0):
    timeout_ms: Int32 = 60000
    topics: Annotated[Array[ListPartitionReassignmentsTopics] | None, nullable()] = None


class OngoingPartitionReassignment(Struct):
    partition_index: Int32
    replicas: Array[Int32]
    adding_replicas: Array[Int32]
    removing_replicas: Array[Int32]


class OngoingTopicReassignment(Struct):
    name: String
    partitions: Array[OngoingPartitionReassignment]


class ListPartitionReassignmentsResponse(Response, api_key=46, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    topics: Array[OngoingTopicReassignment]
