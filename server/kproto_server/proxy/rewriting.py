"""Replace the addresses of brokers in a response: clients that connect to an address of a response stay on the proxy.

Source: the declared messages; tests/proxy/test_rewriting.py enumerates all responses with a host and a port.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.message import Response

    Address = tuple[str, int]
    AddressOf = Callable[[str, int], Address]
    """Takes host and port of a broker; returns the host and port of the proxy that stand for it."""

FIND_COORDINATOR, DESCRIBE_CLUSTER = 10, 60
BROKER_ARRAYS = {
    0: "node_endpoints",
    1: "node_endpoints",
    3: "brokers",
    FIND_COORDINATOR: "coordinators",
    DESCRIBE_CLUSTER: "brokers",
    78: "node_endpoints",
    79: "node_endpoints",
}
"""API key -> the array of its response whose structs have host and port of a broker. FindCoordinator has them in
the response itself before v4."""

NOT_BROKERS = {
    55: "DescribeQuorum: the listeners of controllers, to which no client of brokers connects",
    88: "StreamsGroupHeartbeat: the endpoints of clients (application.server)",
    89: "StreamsGroupDescribe: the endpoints of clients (application.server)",
}
"""API key -> what the other hosts with ports in responses are; they pass unchanged."""

PORT_MAX = 65535


def rewritten(response: Response, address_of: AddressOf) -> Response:
    """Return a response with other addresses of brokers; the same object if it has none.

    A coordinator that is not known has an empty host and no port: these stay.
    """
    api_key = type(response)._api_key
    name = BROKER_ARRAYS.get(api_key)
    if name is None:
        return response
    brokers: tuple[Any, ...] = getattr(response, name) or ()
    for broker in sorted(brokers, key=_node_id):  # so that new ports are in the order of node ids, too
        _readdressed(broker, address_of)
    if brokers:
        response = response.replace(**{name: tuple(_readdressed(broker, address_of) for broker in brokers)})
    if api_key == FIND_COORDINATOR:
        response = _readdressed(response, address_of)
    return response


def _node_id(broker: Any) -> int:
    node_id: int = broker.broker_id if hasattr(broker, "broker_id") else broker.node_id
    return node_id


def _readdressed(struct: Any, address_of: AddressOf) -> Any:
    """Return a struct with ``host`` and ``port`` of the proxy."""
    if not struct.host or not 0 < struct.port <= PORT_MAX:
        return struct
    host, port = address_of(struct.host, struct.port)
    return struct.replace(host=host, port=port)
