"""LeaveGroup (API key 13): members leave their group at once, without waiting for a timeout."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int16, Int32, NullableString, String, Struct, ignorable, since, until
from kproto.message import Request, Response


class MemberIdentity(Struct):
    member_id: String
    group_instance_id: NullableString = None
    reason: Annotated[NullableString, since(5), ignorable] = None


class LeaveGroupRequest(Request, api_key=13, versions=(0, 5), flexible=4):
    """v1-v2: layout of v0
    v3: + members, - member_id; several members in one request
    v4: flexible
    v5: + members[].reason?
    """

    group_id: String
    member_id: Annotated[String, until(2)] = ""
    members: Annotated[Array[MemberIdentity], since(3)] = ()


class MemberResponse(Struct):
    member_id: String
    group_instance_id: NullableString
    error_code: Int16


class LeaveGroupResponse(Response, api_key=13, versions=(0, 5), flexible=4):
    """v1: + throttle_time_ms
    v2: layout of v1; throttled at the client
    v3: + members; an error for each member
    v4: flexible
    v5: layout of v4
    """

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16
    members: Annotated[Array[MemberResponse], since(3)] = ()
