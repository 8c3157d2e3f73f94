"""DeleteGroups (API key 42): an administrator deletes empty groups and their offsets."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int16, Int32, NullableString, String, Struct, ignorable, since
from kproto.message import Request, Response


class DeleteGroupsRequest(Request, api_key=42, versions=(0, 3), flexible=2):
    """v1: layout of v0
    v2: flexible
    v3: layout of v2
    """

    groups_names: Array[String]


class DeletableGroupResult(Struct):
    group_id: String
    error_code: Int16
    error_message: Annotated[NullableString, since(3), ignorable] = None


class DeleteGroupsResponse(Response, api_key=42, versions=(0, 3), flexible=2):
    """v1: layout of v0; throttled at the client
    v2: flexible
    v3: + results[].error_message?
    """

    throttle_time_ms: Int32
    results: Array[DeletableGroupResult]
