"""Put client quotas before the handlers of requests.

Theory of operation. Each endpoint checks whether the cluster has client quotas. If it has some, `Throttles` handles the
request; otherwise the handler does, without further cost. The commit cache responds without endpoints, which is right
as long as no client has a quota of handler time (`Cluster.limits_handler_time`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kproto_server.connection.dispatcher import Endpoints

if TYPE_CHECKING:
    from kproto_server.connection.dispatcher import Dispatcher
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.endpoint import Endpoint
    from kproto_server.throttling.throttles import Throttles


def install(dispatcher: Dispatcher) -> None:
    """Have a dispatcher throttle clients. Called after an authorizer is installed, because its checks expect the
    responses that handlers make."""
    dispatcher.endpoints = _ThrottlingEndpoints(dispatcher)


class _ThrottlingEndpoints(Endpoints):
    """The endpoints of a broker whose clients may have quotas, made when first needed."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__()
        self._own = dispatcher.endpoints
        self._dispatcher = dispatcher

    @cached_property
    def _throttles(self) -> Throttles:
        """Made at its first use: few brokers have quotas."""
        from kproto_server.throttling.throttles import Throttles

        return Throttles(self._dispatcher)

    def _made(self, key: tuple[int, int]) -> Endpoint:
        own = self._own[key]

        def handle(request: Any, context: RequestContext) -> Any:
            if not context.cluster.client_quotas:
                return own.handle(request, context)
            return self._throttles.handle(own, request, context)

        return replace(own, handle=handle)
