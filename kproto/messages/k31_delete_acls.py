"""DeleteAcls (API key 31): an administrator removes the access rules that match filters."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int8, Int16, Int32, NullableString, String, Struct, since
from kproto.message import Request, Response


class DeleteAclsFilter(Struct):
    resource_type_filter: Int8
    resource_name_filter: NullableString
    pattern_type_filter: Annotated[Int8, since(1)] = 3
    """1: any; 2: all that match the name; 3: literal; 4: prefixed."""
    principal_filter: NullableString
    host_filter: NullableString
    operation: Int8
    permission_type: Int8


class DeleteAclsRequest(Request, api_key=31, versions=(0, 3), flexible=2):
    """v1: + filters[].pattern_type_filter
    v2: flexible
    v3: layout of v2; resource type USER
    """

    filters: Array[DeleteAclsFilter]


class DeleteAclsMatchingAcl(Struct):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String
    pattern_type: Annotated[Int8, since(1)] = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DeleteAclsFilterResult(Struct):
    error_code: Int16
    error_message: NullableString
    matching_acls: Array[DeleteAclsMatchingAcl]


class DeleteAclsResponse(Response, api_key=31, versions=(0, 3), flexible=2):
    """v1: + filter_results[].matching_acls[].pattern_type; throttled at the client
    v2: flexible
    v3: layout of v2
    """

    throttle_time_ms: Int32
    filter_results: Array[DeleteAclsFilterResult]
