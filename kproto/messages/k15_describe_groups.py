"""DescribeGroups (API key 15): state and members of groups of the classic protocol."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Bytes, Int16, Int32, NullableString, String, Struct, ignorable, since
from kproto.message import Request, Response


class DescribeGroupsRequest(Request, api_key=15, versions=(0, 6), flexible=5):
    """v1-v2: layout of v0
    v3: + include_authorized_operations
    v4: layout of v3
    v5: flexible
    v6: layout of v5
    """

    groups: Array[String]
    include_authorized_operations: Annotated[Bool, since(3)] = False


class DescribedGroupMember(Struct):
    member_id: String
    group_instance_id: Annotated[NullableString, since(4), ignorable] = None
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


class DescribedGroup(Struct):
    error_code: Int16
    error_message: Annotated[NullableString, since(6)] = None
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: Array[DescribedGroupMember]
    authorized_operations: Annotated[Int32, since(3)] = -2147483648
    """Bit n is ACL operation n; -2147483648 if the request does not ask for it."""


class DescribeGroupsResponse(Response, api_key=15, versions=(0, 6), flexible=5, has_slices=True):
    """v1: + throttle_time_ms
    v2: layout of v1; throttled at the client
    v3: + groups[].authorized_operations
    v4: + groups[].members[].group_instance_id?
    v5: flexible
    v6: + groups[].error_message?; an unknown group is GROUP_ID_NOT_FOUND, not a group in state Dead
    """

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    groups: Array[DescribedGroup]
