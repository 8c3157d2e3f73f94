"""IncrementalAlterConfigs (API key 44): an administrator changes single dynamic configs of resources."""

from __future__ import annotations

from kproto.declaration import Array, Bool, Int8, Int16, Int32, NullableString, String, Struct
from kproto.message import Request, Response
from kproto.secret_configs import is_secret_config


class AlterableConfig(Struct):
    name: String
    config_operation: Int8
    """0: set; 1: delete; 2: append to the list; 3: subtract from it."""
    value: NullableString

    def _hides(self, name: str) -> bool:
        return name == "value" and is_secret_config(self.name)


class AlterConfigsResource(Struct):
    resource_type: Int8
    """2: topic; 4: broker; 8: broker's loggers; 16: client metrics; 32: group."""
    resource_name: String
    configs: Array[AlterableConfig]


class IncrementalAlterConfigsRequest(Request, api_key=44, versions=(0, 1), flexible=1):
    """v1: flexible."""

    resources: Array[AlterConfigsResource]
    validate_only: Bool


class AlterConfigsResourceResponse(Struct):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String


class IncrementalAlterConfigsResponse(Response, api_key=44, versions=(0, 1), flexible=1):
    """v1: flexible."""

    throttle_time_ms: Int32
    responses: Array[AlterConfigsResourceResponse]
