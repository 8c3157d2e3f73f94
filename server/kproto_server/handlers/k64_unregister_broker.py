"""UnregisterBroker (API key 64): a KRaft cluster forgets a broker that has stopped (KIP-500)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k64_unregister_broker import UnregisterBrokerResponse
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto.messages.k64_unregister_broker import UnregisterBrokerRequest
    from kproto_server.requests.context import RequestContext


class UnregisterBehavior(VersionBehavior):
    """What Kafka releases do differently with UnregisterBroker."""

    @cached_property
    def names_unknown_broker(self) -> bool:
        """Whether the error of an unknown broker has a message (measured on 3.3.2, 3.9.2, 4.0.0, 4.1.2 and 4.2.2)."""
        return self.at_least(4, 1)


def handle(request: UnregisterBrokerRequest, context: RequestContext) -> UnregisterBrokerResponse:
    node_id, cluster = request.broker_id, context.cluster
    if node_id not in {node.node_id for node in cluster.counted_nodes()}:
        is_named = context.behavior(UnregisterBehavior).names_unknown_broker
        message = f"Broker ID {node_id} is not currently registered" if is_named else ""
        return _response(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    if cluster.is_alive(node_id):
        # DEVIATION: a real cluster forgets the broker, which serves its clients as before, until it starts again.
        return _response(ErrorCode.INVALID_REQUEST, f"Broker {node_id} is running: stop it first.")
    cluster.unregister(node_id)
    return _response()


def _response(error: ErrorCode = ErrorCode.NONE, message: str = "") -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(throttle_time_ms=0, error_code=error, error_message=message)
