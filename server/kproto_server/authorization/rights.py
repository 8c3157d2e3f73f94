"""What the client of a connection may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.security.acls import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.requests.context import ConnectionInfo
    from kproto_server.security.acls import Authorizer


class Rights:
    """What the client of a request may do, by the ACLs of the moment."""

    __slots__ = ("_authorizer", "_host", "_principal")

    def __init__(self, authorizer: Authorizer, connection: ConnectionInfo) -> None:
        self._authorizer = authorizer
        self._principal = connection.principal
        self._host = connection.client_host.lstrip("/")

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Return whether the client may do an operation on a resource."""
        return self._authorizer.allows(self._principal, self._host, operation, resource_type, name)

    def on_cluster(self, operation: Operation) -> bool:
        """Return whether the client may do an operation on the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def on_topic(self, operation: Operation, name: str) -> bool:
        """Return whether the client may do an operation on a topic."""
        return self.may(operation, ResourceType.TOPIC, name)

    def on_group(self, operation: Operation, group_id: str) -> bool:
        """Return whether the client may do an operation on a group."""
        return self.may(operation, ResourceType.GROUP, group_id)

    def on_transactional_id(self, operation: Operation, transactional_id: str) -> bool:
        """Return whether the client may do an operation on a transactional id."""
        return self.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def on_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether the client may do an operation on some resource of a type."""
        return self._authorizer.allows_any(self._principal, self._host, operation, resource_type)

    def bits(self, supported: int, resource_type: ResourceType, name: str) -> int:
        """Return which operations of a bit field the client may do (BA-36)."""
        return sum(1 << one for one in _operations(supported) if self.may(one, resource_type, name))


def _operations(bits: int) -> Iterable[Operation]:
    return (one for one in Operation if bits >> one & 1)
