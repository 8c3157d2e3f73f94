"""ConsumerGroupHeartbeat (API key 68): a KIP-848 member joins, stays, leaves, and receives its assignment."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int16, Int32, NullableString, String, Struct, Uuid, nullable, since
from kproto.message import Request, Response


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: Array[Int32]


class ConsumerGroupHeartbeatRequest(Request, api_key=68, versions=(0, 1), flexible=0):
    """v1: + subscribed_topic_regex?; the member makes its own id (KIP-1082)."""

    group_id: String
    member_id: String
    member_epoch: Int32
    """0: join; -1: leave; -2: leave temporarily, as a static member."""
    instance_id: NullableString = None
    rack_id: NullableString = None
    rebalance_timeout_ms: Int32 = -1
    """How long the member may take to revoke partitions; -1: as in the last request."""
    subscribed_topic_names: Annotated[Array[String] | None, nullable()] = None
    """Null, here and in other fields: as in the last request."""
    subscribed_topic_regex: Annotated[NullableString, since(1)] = None
    server_assignor: NullableString = None
    topic_partitions: Annotated[Array[TopicPartitions] | None, nullable()] = None


class Assignment(Struct):
    topic_partitions: Array[TopicPartitions]


class ConsumerGroupHeartbeatResponse(Response, api_key=68, versions=(0, 1), flexible=0):
    """v1: layout of v0; may return INVALID_REGULAR_EXPRESSION."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    member_id: NullableString = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Annotated[Assignment | None, nullable()] = None
    """Null: as in the last request."""
