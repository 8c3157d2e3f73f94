"""The responses to requests whose result cannot be encoded, because a string is too long for the protocol.

Real brokers, too, decide first and find out when they encode the response: an error message that quotes a long name, or
a name that has grown because malformed bytes became replacement characters. They send UNKNOWN_SERVER_ERROR for all that
was requested instead, although it may have been done (measured on 0.10.2.2, 2.8.2 and 4.4.0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto import registry
from kproto.codes import ErrorCode
from kproto.declaration import fields_of
from kproto.messages import APIS
from kproto_server.handlers._error_responses import ErrorResponse, Items, build

if TYPE_CHECKING:
    from kproto.errors import StringTooLong
    from kproto.message import Request, Response

FAILED = ErrorResponse(ErrorCode.UNKNOWN_SERVER_ERROR)

_RESOURCE = {"resource_type": "resource_type", "resource_name": "resource_name"}
_NO_MESSAGE = {"error_message": None}
_ALTERED = FAILED._replace(items=(Items("responses", "resources", _RESOURCE),), values=_NO_MESSAGE)

RESPONSES: dict[str, ErrorResponse] = {
    "CreateTopics": FAILED._replace(
        items=(Items("topics", "topics", {"name": "name"}),), values={**_NO_MESSAGE, "configs": ()}
    ),
    "CreatePartitions": FAILED._replace(items=(Items("results", "topics", {"name": "name"}),), values=_NO_MESSAGE),
    "DescribeConfigs": FAILED._replace(items=(Items("results", "resources", _RESOURCE),)),
    "AlterConfigs": _ALTERED,
    "IncrementalAlterConfigs": _ALTERED,
}
"""The response of each API whose items have the error, by name. Others have it in the response itself, or nowhere."""


def respond(request: Request, api_version: int, error: StringTooLong) -> Response:
    """Return the response to a request whose result cannot be encoded.

    Raises:
        StringTooLong: the error, if the API has no such response.
    """
    response_class = registry.response_class(request._api_key)
    response = RESPONSES.get(APIS[request._api_key], FAILED)
    has_error = any(f.name == "error_code" and f.versions.covers(api_version) for f in fields_of(response_class))
    if not (response.items or has_error):
        raise error
    return build(response, request, response_class, api_version)
