"""CreateAcls (API key 30): an administrator adds access rules."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int8, Int16, Int32, NullableString, String, Struct, since
from kproto.message import Request, Response


class AclCreation(Struct):
    resource_type: Int8
    resource_name: String
    resource_pattern_type: Annotated[Int8, since(1)] = 3
    """3: literal; 4: prefixed."""
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class CreateAclsRequest(Request, api_key=30, versions=(0, 3), flexible=2):
    """v1: + creations[].resource_pattern_type
    v2: flexible
    v3: layout of v2; resource type USER
    """

    creations: Array[AclCreation]


class AclCreationResult(Struct):
    error_code: Int16
    error_message: NullableString


class CreateAclsResponse(Response, api_key=30, versions=(0, 3), flexible=2):
    """v1: layout of v0; throttled at the client
    v2: flexible
    v3: layout of v2
    """

    throttle_time_ms: Int32
    results: Array[AclCreationResult]
