"""UnregisterController (API key 94): a KRaft cluster forgets a controller (measured on 4.4.0)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k94_unregister_controller import UnregisterControllerResponse

if TYPE_CHECKING:
    from kproto.messages.k94_unregister_controller import UnregisterControllerRequest
    from kproto_server.requests.context import RequestContext

ITSELF = "Controller cannot unregister itself while it is active."


def handle(request: UnregisterControllerRequest, context: RequestContext) -> UnregisterControllerResponse:
    if request.controller_id == context.cluster.controller_id:
        error, message = ErrorCode.INVALID_REQUEST, ITSELF
    else:
        error = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
        message = f"Controller ID {request.controller_id} is not currently registered."
    return UnregisterControllerResponse(throttle_time_ms=0, error_code=error, error_message=message)
