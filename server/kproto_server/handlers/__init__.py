"""The handlers: one file per API key, with the basename of its message, so ``ls`` lists the APIs that kproto
implements.

A handler is a function ``handle(request, context)`` of the request and the broker's state. It does no I/O and reads no
clock. It returns the response, a `DelayedOperation`, a `DeferredResponse` or `NO_RESPONSE`, or raises
`CloseConnection`. Handlers do not import each other; modules that several handlers use have names with an underscore.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kproto.messages import APIS, module_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.errors import StringTooLong
    from kproto.message import Request, Response
    from kproto_server.cluster.topics import TopicsNotStored
    from kproto_server.observation.observe import Observations
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.requests.endpoint import Endpoint

HANDLED = frozenset(
    {*range(4), *range(8, 52), 55, 57, 60, 61, 64, 65, 66, 68, 69, 71, 72, 74} | {*range(75, 82), *range(83, 93), 94}
)
"""API keys with a handler file. `unsupported` responds to all others (server/DEVIATIONS.md)."""


OWN_ENDPOINTS = frozenset({8, 18})
"""API keys whose module has a function ``endpoint``, for versions that are not served in the general way."""

SYNC_SHARING_KEYS = (b"\0\x08",)
"""API keys, as requests begin with them, of requests that append to the log and read nothing. The connection handles
them while earlier ones of this kind wait for the log, so that all of them share a sync (OS-27)."""


def handler(api_key: int) -> Callable[[Any, Any], Any]:
    """Return the handler of an API. Its module is imported at the first call, to keep the start-up fast (D14)."""
    if api_key in HANDLED:
        module = importlib.import_module(f"{__name__}.{module_name(api_key)}")
        return module.handle  # type: ignore[no-any-return]  # a module attribute has no declared type
    from kproto_server.handlers import unsupported

    return unsupported.handler(APIS[api_key])


def failure(request: Request, api_version: int, error: StringTooLong | TopicsNotStored) -> Response:
    """Return the response to a request whose result cannot be encoded, or whose changes cannot be stored.

    Raises:
        StringTooLong, TopicsNotStored: the error, if the API has no such response.
    """
    from kproto_server.handlers import failed

    return failed.respond(request, api_version, error)


def own_endpoint(
    api_key: int, api_version: int, kafka_version: KafkaVersion, observations: Observations
) -> Endpoint | None:
    """Return the endpoint that an API makes itself for a version; None: the version is served in the general way.

    Raises:
        CloseConnection: the Kafka version does not serve this version of the API.
    """
    if api_key not in OWN_ENDPOINTS:
        return None
    module = importlib.import_module(f"{__name__}.{module_name(api_key)}")
    return module.endpoint(api_version, kafka_version, observations)  # type: ignore[no-any-return]  # as above
