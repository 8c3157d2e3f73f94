"""DescribeConfigs (API key 32): the configs of topics, brokers and other resources, and the source of each."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    Struct,
    ignorable,
    nullable,
    only,
    since,
)
from kproto.message import Request, Response


class DescribeConfigsResource(Struct):
    resource_type: Int8
    """2: topic; 4: broker; 8: broker's loggers; 16: client metrics; 32: group."""
    resource_name: String
    configuration_keys: Annotated[Array[String] | None, nullable()]
    """Null: all."""


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
    """Null if it is sensitive."""
    read_only: Bool
    is_default: Annotated[Bool, only(0)] = False
    config_source: Annotated[Int8, since(1), ignorable] = -1
    """1: topic; 2: broker, dynamic; 3: all brokers, dynamic; 4: broker, static; 5: default;
    6: broker's loggers; 7: client metrics; 8: group.
    """
    is_sensitive: Bool
    synonyms: Annotated[Array[DescribeConfigsSynonym], since(1), ignorable] = ()
    config_type: Annotated[Int8, since(3), ignorable] = 0
    """0: unknown; 1: boolean; 2: string; 3: int; 4: short; 5: long; 6: double; 7: list; 8: class;
    9: password.
    """
    documentation: Annotated[NullableString, since(3), ignorable] = ""


class DescribeConfigsResult(Struct):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String
    configs: Array[DescribeConfigsResourceResult]


class DescribeConfigsResponse(Response, api_key=32, versions=(0, 4), flexible=4, has_slices=True):
    """v1: + results[].configs[].config_source, + results[].configs[].synonyms, - results[].configs[].is_default
    v2: layout of v1; throttled at the client
    v3: + results[].configs[].config_type, + results[].configs[].documentation?
    v4: flexible
    """

    throttle_time_ms: Int32
    results: Array[DescribeConfigsResult]
