"""DescribeAcls (API key 29): the access rules that match a filter."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int8, Int16, Int32, NullableString, String, Struct, since
from kproto.message import Request, Response


class DescribeAclsRequest(Request, api_key=29, versions=(0, 3), flexible=2):
    """v1: + pattern_type_filter
    v2: flexible
    v3: layout of v2; resource type USER
    """

    resource_type_filter: Int8
    resource_name_filter: NullableString
    pattern_type_filter: Annotated[Int8, since(1)] = 3
    """1: any; 2: all that match the name; 3: literal; 4: prefixed."""
    principal_filter: NullableString
    host_filter: NullableString
    operation: Int8
    permission_type: Int8


class AclDescription(Struct):
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DescribeAclsResource(Struct):
    resource_type: Int8
    resource_name: String
    pattern_type: Annotated[Int8, since(1)] = 3
    acls: Array[AclDescription]


class DescribeAclsResponse(Response, api_key=29, versions=(0, 3), flexible=2):
    """v1: + resources[].pattern_type; throttled at the client
    v2: flexible
    v3: layout of v2
    """

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    resources: Array[DescribeAclsResource]
