"""SyncGroup (API key 14): the leader of a group sends the assignment, and each member receives its part."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bytes, Int16, Int32, NullableString, String, Struct, ignorable, since
from kproto.message import Request, Response


class SyncGroupRequestAssignment(Struct):
    member_id: String
    assignment: Bytes


class SyncGroupRequest(Request, api_key=14, versions=(0, 5), flexible=4):
    """v1-v2: layout of v0
    v3: + group_instance_id?
    v4: flexible
    v5: + protocol_type?, + protocol_name?; they must match the group's
    """

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[NullableString, since(3)] = None
    protocol_type: Annotated[NullableString, since(5), ignorable] = None
    protocol_name: Annotated[NullableString, since(5), ignorable] = None
    assignments: Array[SyncGroupRequestAssignment]
    """Empty except from the leader."""


class SyncGroupResponse(Response, api_key=14, versions=(0, 5), flexible=4):
    """v1: + throttle_time_ms
    v2: layout of v1; throttled at the client
    v3: layout of v2; may return FENCED_INSTANCE_ID
    v4: flexible
    v5: + protocol_type?, + protocol_name?; may return INCONSISTENT_GROUP_PROTOCOL
    """

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16
    protocol_type: Annotated[NullableString, since(5), ignorable] = None
    protocol_name: Annotated[NullableString, since(5), ignorable] = None
    assignment: Bytes
