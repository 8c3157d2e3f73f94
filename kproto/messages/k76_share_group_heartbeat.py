"""ShareGroupHeartbeat (API key 76): a member of a share group joins, stays, leaves, and receives its assignment."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int16, Int32, NullableString, String, Struct, Uuid, nullable
from kproto.message import Request, Response


class ShareGroupHeartbeatRequest(Request, api_key=76, versions=(1, 1), flexible=0):
    group_id: String
    member_id: String
    member_epoch: Int32
    """0: join; -1: leave."""
    rack_id: NullableString = None
    subscribed_topic_names: Annotated[Array[String] | None, nullable()] = None


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: Array[Int32]


class Assignment(Struct):
    topic_partitions: Array[TopicPartitions]


class ShareGroupHeartbeatResponse(Response, api_key=76, versions=(1, 1), flexible=0):
    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    member_id: NullableString = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Annotated[Assignment | None, nullable()] = None
