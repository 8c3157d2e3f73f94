"""How quotas come into the way of requests.

Theory of operation. Each endpoint looks whether there are client quotas at all. While there are none, that is all that
happens; otherwise `Throttles` handles the request. The commit cache responds without endpoints, to clients that have no
quota of handler time only (`Cluster.limits_handler_time`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kproto_server.requests.dispatcher import Endpoints

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.dispatcher import Dispatcher
    from kproto_server.requests.endpoint import Endpoint
    from kproto_server.throttling.throttles import Throttles


def install(dispatcher: Dispatcher) -> None:
    """Have a dispatcher throttle clients. It is called behind the installation of an authorizer, whose checks are about
    responses as handlers make them."""
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
