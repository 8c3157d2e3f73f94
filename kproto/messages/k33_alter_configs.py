"""AlterConfigs (API key 33): an administrator replaces all dynamic configs of resources."""

from __future__ import annotations

from kproto.declaration import Array, Bool, Int8, Int16, Int32, NullableString, String, Struct
from kproto.message import Request, Response
from kproto.secret_configs import is_secret_config


class AlterableConfig(Struct):
    name: String
    value: NullableString

    def _hides(self, name: str) -> bool:
        return name == "value" and is_secret_config(self.name)


class AlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: Array[AlterableConfig]


class AlterConfigsRequest(Request, api_key=33, versions=(0, 2), flexible=2):
    """v1: layout of v0
    v2: flexible
    """

    resources: Array[AlterConfigsResource]
    validate_only: Bool


class AlterConfigsResourceResponse(Struct):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String


class AlterConfigsResponse(Response, api_key=33, versions=(0, 2), flexible=2):
    """v1: layout of v0; throttled at the client
    v2: flexible
    """

    throttle_time_ms: Int32
    responses: Array[AlterConfigsResourceResponse]
