"""Endpoints: how a broker serves one API in one version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.errors import StringTooLong
    from kproto.message import Response
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.deferred import DeferredResponse, DelayedOperation, NoResponse


def _no_response(request: Any, error: StringTooLong) -> Response:
    raise error


class Endpoint(NamedTuple):
    """How one API is served in one version.

    `Dispatcher` makes endpoints from the codec and the handler of the API. An API with a version that needs more than
    that makes the endpoint of this version itself (`kproto_server.handlers.own_endpoint`).
    """

    api_version: int
    """The version that handlers see: the requested one, except in Kafka 0.8, which does not check versions."""
    decode: Callable[[bytes, int, RequestContext], Any]
    """Returns the request whose body begins at a position of a frame."""
    handle: Callable[[Any, RequestContext], Response | DelayedOperation | DeferredResponse | NoResponse]
    encode: Callable[[Any], bytes]
    """Returns the body of a response."""
    response_header_version: int
    reports_errors: bool = True
    """Whether error codes in responses are reported (`Observations`)."""
    fail: Callable[[Any, StringTooLong], Response] = _no_response
    """Returns the response to a request whose result cannot be encoded; raises the error if there is none."""
