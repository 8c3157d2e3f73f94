"""JoinGroup (API key 11): a member joins a group, or rejoins during a rebalance."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    Array,
    Bool,
    Bytes,
    Int16,
    Int32,
    NullableString,
    String,
    Struct,
    ignorable,
    nullable,
    since,
)
from kproto.message import Request, Response


class JoinGroupRequestProtocol(Struct):
    name: String
    metadata: Bytes


class JoinGroupRequest(Request, api_key=11, versions=(0, 9), flexible=6):
    """v0: the session timeout is also that of a rebalance
    v1: + rebalance_timeout_ms
    v2-v3: layout of v1
    v4: layout of v3; a new member receives its id and must rejoin with it
    v5: + group_instance_id?
    v6: flexible
    v7: layout of v6
    v8: + reason?
    v9: layout of v8
    """

    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Annotated[Int32, since(1), ignorable] = -1
    """How long the other members may take to rejoin; -1: the session timeout."""
    member_id: String
    """Empty at the first join."""
    group_instance_id: Annotated[NullableString, since(5)] = None
    protocol_type: String
    protocols: Array[JoinGroupRequestProtocol]
    reason: Annotated[NullableString, since(8), ignorable] = None


class JoinGroupResponseMember(Struct):
    member_id: String
    group_instance_id: Annotated[NullableString, since(5), ignorable] = None
    metadata: Bytes


class JoinGroupResponse(Response, api_key=11, versions=(0, 9), flexible=6, has_slices=True):
    """v1: layout of v0
    v2: + throttle_time_ms
    v3: layout of v2; throttled at the client
    v4: layout of v3; may return MEMBER_ID_REQUIRED
    v5: + members[].group_instance_id?; may return FENCED_INSTANCE_ID
    v6: flexible
    v7: + protocol_type?, protocol_name may be null
    v8: layout of v7
    v9: + skip_assignment
    """

    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: Annotated[NullableString, since(7), ignorable] = None
    protocol_name: Annotated[String | None, nullable(since(7))]
    leader: String
    skip_assignment: Annotated[Bool, since(9)] = False
    """The leader computes no assignment: the existing one stays."""
    member_id: String
    members: Array[JoinGroupResponseMember]
    """Empty except for the leader."""
