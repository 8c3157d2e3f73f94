"""How quotas come into the way of requests.

Theory of operation. The endpoints of Produce and Fetch look whether there are client quotas at all. While there are
none, that is all that happens; otherwise `Throttles` handles the request. Other APIs are as without this module.
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

PRODUCE, FETCH = 0, 1


def install(dispatcher: Dispatcher) -> None:
    """Have a dispatcher throttle clients. It is called behind the installation of an authorizer, whose checks are about
    responses as handlers make them."""
    dispatcher.endpoints = _ThrottlingEndpoints(dispatcher)


class _ThrottlingEndpoints(Endpoints):
    """The endpoints of a broker whose clients may have quotas, made when first needed."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__()
        self._own = dispatcher.endpoints
        self._state = dispatcher.state

    @cached_property
    def _throttles(self) -> Throttles:
        """Made at its first use: few brokers have quotas."""
        from kproto_server.throttling.throttles import Throttles

        return Throttles(self._state.clock, self._state.settings, self._state.cluster.quota_rates)

    def _made(self, key: tuple[int, int]) -> Endpoint:
        own = endpoint = self._own[key]
        if key[0] in (PRODUCE, FETCH):

            def handle(request: Any, context: RequestContext) -> Any:
                if not context.cluster.client_quotas:
                    return own.handle(request, context)
                return self._throttles.handle(own, request, context)

            endpoint = replace(own, handle=handle)
        return endpoint
