"""CreatePartitions (API key 37): an administrator adds partitions to topics."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Int16, Int32, NullableString, String, Struct, nullable
from kproto.message import Request, Response


class CreatePartitionsAssignment(Struct):
    broker_ids: Array[Int32]


class CreatePartitionsTopic(Struct):
    name: String
    count: Int32
    """The total count of partitions."""
    assignments: Annotated[Array[CreatePartitionsAssignment] | None, nullable()]
    """The brokers of each new partition; null: the controller chooses."""


class CreatePartitionsRequest(Request, api_key=37, versions=(0, 3), flexible=2):
    """v1: layout of v0
    v2: flexible
    v3: layout of v2
    """

    topics: Array[CreatePartitionsTopic]
    timeout_ms: Int32
    validate_only: Bool


class CreatePartitionsTopicResult(Struct):
    name: String
    error_code: Int16
    error_message: NullableString = None


class CreatePartitionsResponse(Response, api_key=37, versions=(0, 3), flexible=2):
    """v1: layout of v0; throttled at the client
    v2: flexible
    v3: layout of v2; may return THROTTLING_QUOTA_EXCEEDED
    """

    throttle_time_ms: Int32
    results: Array[CreatePartitionsTopicResult]
