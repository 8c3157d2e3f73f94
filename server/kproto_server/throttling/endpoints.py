"""Put client quotas before the handlers of requests.

Theory of operation. While the cluster has client quotas, the endpoints have `Throttles` handle their requests;
otherwise they have the handlers of the APIs, and quotas cost nothing. With a change, the endpoints that were made get
their other handler in place, because other code keeps them (fault rules). The commit cache responds without endpoints,
which is right as long as no client has a quota of handler time (`Cluster.limits_handler_time`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from kproto_server.connection.dispatcher import ENDPOINTS_MAX, Endpoints

if TYPE_CHECKING:
    from collections.abc import Callable

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
        self._cluster = dispatcher.state.cluster
        self._pairs: list[tuple[Endpoint, Endpoint]] = []
        """The endpoints that were made, each with the one that it was made from."""
        self._cluster.on_client_quotas.append(self._choose_handlers)

    @cached_property
    def _throttles(self) -> Throttles:
        """Made at its first use: few brokers have quotas."""
        from kproto_server.throttling.throttles import Throttles

        return Throttles(self._dispatcher)

    def _made(self, key: tuple[int, int]) -> Endpoint:
        own = self._own[key]
        made = replace(own, handle=self._handler(own))
        if len(self._pairs) < ENDPOINTS_MAX:
            self._pairs.append((made, own))
        return made

    def _choose_handlers(self) -> None:
        for made, own in self._pairs:
            made.handle = self._handler(own)

    def _handler(self, own: Endpoint) -> Callable[[Any, RequestContext], Any]:
        return partial(self._throttles.handle, own) if self._cluster.client_quotas else own.handle
