"""The APIs that do nothing in kproto. Each has a response: a client that sends one must stop at once and say why.

So the error of such an API is never retriable. Where Kafka has an error that is true, the response has that error, such
as TRANSACTIONAL_ID_NOT_FOUND or SECURITY_DISABLED. Otherwise it is UNSUPPORTED_VERSION, which all clients understand as
"this broker cannot do that". server/DEVIATIONS.md lists all of these APIs with reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto import registry
from kproto.codes import ErrorCode
from kproto.messages import APIS
from kproto_server.handlers._error_responses import ITSELF, ErrorResponse, build

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.message import Request, Response
    from kproto_server.requests.context import RequestContext


UNKNOWN = -1
"""For offsets, epochs and times that do not exist."""

_API_KEYS = {name: api_key for api_key, name in APIS.items()}

_INDEX = {"partition_index": ITSELF}
_SAME_INDEX = {"partition_index": "partition_index"}
_NAME = {"name": "name"}
_BY_ID_OR_NAME = {"name": "name", "topic_id": "topic_id"}

_NO_PLUGIN = ErrorResponse(
    ErrorCode.UNSUPPORTED_VERSION, "The broker has no streams group topology description plugin configured."
)
"""As a real broker without that plugin (measured on 4.4.0)."""
_BROKERS_ONLY = ErrorResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

RESPONSES: dict[str, ErrorResponse] = {
    # Members of groups.
    "StreamsGroupTopologyDescriptionUpdate": _NO_PLUGIN,
    # Requests that only brokers and controllers send.
    "LeaderAndIsr": _BROKERS_ONLY,
    "StopReplica": _BROKERS_ONLY,
    "UpdateMetadata": _BROKERS_ONLY,
    "ControlledShutdown": _BROKERS_ONLY,
    "AlterPartition": _BROKERS_ONLY,
    "Envelope": _BROKERS_ONLY,
    "AllocateProducerIds": _BROKERS_ONLY,
}
"""The response of each API, by name."""


def handler(api_name: str) -> Callable[[Request, RequestContext], Response]:
    """Return the handler of an API that does nothing."""
    error_response, response_class = RESPONSES[api_name], registry.response_class(_API_KEYS[api_name])

    def handle(request: Request, context: RequestContext) -> Response:
        return build(error_response, request, response_class, context.api_version)

    return handle
