"""UnregisterController (API key 94): an administrator removes a controller from a KRaft cluster."""

from __future__ import annotations

from kproto.declaration import Int16, Int32, NullableString
from kproto.message import Request, Response


class UnregisterControllerRequest(Request, api_key=94, versions=(0, 0), flexible=0):
    controller_id: Int32


class UnregisterControllerResponse(Response, api_key=94, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
