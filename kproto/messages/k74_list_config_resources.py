"""ListConfigResources (API key 74): the resources that have configs."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int8, Int16, Int32, String, Struct, ignorable, since
from kproto.message import Request, Response


class ListConfigResourcesRequest(Request, api_key=74, versions=(0, 1), flexible=0):
    """v0: lists client metrics resources only
    v1: + resource_types
    """

    resource_types: Annotated[Array[Int8], since(1)] = ()
    """Empty: all. 2: topic; 4: broker; 8: broker's loggers; 16: client metrics; 32: group."""


class ConfigResource(Struct):
    resource_name: String
    resource_type: Annotated[Int8, since(1), ignorable] = 16


class ListConfigResourcesResponse(Response, api_key=74, versions=(0, 1), flexible=0, has_slices=True):
    """v1: + config_resources[].resource_type."""

    throttle_time_ms: Int32
    error_code: Int16
    config_resources: Array[ConfigResource]
