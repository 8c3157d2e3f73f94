"""Heartbeat (API key 12): a member proves that it is alive, and learns of a rebalance."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Int16, Int32, NullableString, String, ignorable, since
from kproto.message import Request, Response


class HeartbeatRequest(Request, api_key=12, versions=(0, 4), flexible=4):
    """v1-v2: layout of v0
    v3: + group_instance_id?
    v4: flexible
    """

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[NullableString, since(3)] = None


class HeartbeatResponse(Response, api_key=12, versions=(0, 4), flexible=4):
    """v1: + throttle_time_ms
    v2: layout of v1; throttled at the client
    v3: layout of v2; may return FENCED_INSTANCE_ID
    v4: flexible
    """

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16
