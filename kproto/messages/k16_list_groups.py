"""ListGroups (API key 16): the groups of a coordinator."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int16, Int32, String, Struct, ignorable, since
from kproto.message import Request, Response


class ListGroupsRequest(Request, api_key=16, versions=(0, 5), flexible=3):
    """v1-v2: layout of v0
    v3: flexible
    v4: + states_filter
    v5: + types_filter
    """

    states_filter: Annotated[Array[String], since(4)] = ()
    """Empty: all."""
    types_filter: Annotated[Array[String], since(5)] = ()
    """Empty: all."""


class ListedGroup(Struct):
    group_id: String
    protocol_type: String
    group_state: Annotated[String, since(4), ignorable] = ""
    group_type: Annotated[String, since(5), ignorable] = ""


class ListGroupsResponse(Response, api_key=16, versions=(0, 5), flexible=3, has_slices=True):
    """v1: + throttle_time_ms
    v2: layout of v1; throttled at the client
    v3: flexible
    v4: + groups[].group_state
    v5: + groups[].group_type
    """

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16
    groups: Array[ListedGroup]
