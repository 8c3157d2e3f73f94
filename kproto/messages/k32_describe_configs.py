"""DescribeConfigs (API key 32)."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    NullableString,
    Request,
    Response,
    String,
    Struct,
    ignorable,
    nullable,
    only,
    since,
)


class DescribeConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configuration_keys: Annotated[Array[String] | None, nullable()]


class DescribeConfigsRequest(Request, api_key=32, versions=(0, 4), flexible=4):
    """v1: + include_synonyms
    v2: layout of v1
    v3: + include_documentation
    v4: flexible
    """

    resources: Array[DescribeConfigsResource]
    include_synonyms: Annotated[Bool, since(1)] = False
    include_documentation: Annotated[Bool, since(3)] = False


class DescribeConfigsSynonym(Struct):
    name: String
    value: NullableString
    source: Int8


class DescribeConfigsResourceResult(Struct):
    name: String
    value: NullableString
    read_only: Bool
    is_default: Annotated[Bool, only(0)] = False
    config_source: Annotated[Int8, since(1), ignorable] = -1
    is_sensitive: Bool
    synonyms: Annotated[Array[DescribeConfigsSynonym], since(1), ignorable] = ()
    config_type: Annotated[Int8, since(3), ignorable] = 0
    documentation: Annotated[NullableString, since(3), ignorable] = ""


class DescribeConfigsResult(Struct):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String
    configs: Array[DescribeConfigsResourceResult]


class DescribeConfigsResponse(Response, api_key=32, versions=(0, 4), flexible=4):
    """v1: + results[].configs[].config_source, + results[].configs[].synonyms, -
          results[].configs[].is_default
    v2: layout of v1
    v3: + results[].configs[].config_type, + results[].configs[].documentation?
    v4: flexible
    """

    throttle_time_ms: Int32
    results: Array[DescribeConfigsResult]
