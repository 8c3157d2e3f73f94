"""The request context: what a handler receives beside the request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto_server.client_metrics.subscriptions import ClientMetrics
    from kproto_server.cluster.cluster import Cluster, Node
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.security.refusals import TlsParameters
    from kproto_server.security.sasl import Authentication
    from kproto_server.share_groups.share_groups import ShareGroups
    from kproto_server.transactions.coordinator import TransactionCoordinator


B = TypeVar("B", bound=VersionBehavior)

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client without authentication."""


class Login(Protocol):
    """What is known of a client's authentication by SASL."""

    @property
    def mechanism(self) -> str | None:
        """The mechanism that was chosen last."""

    @property
    def is_complete(self) -> bool:
        """Whether the client is authenticated."""


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class ConnectionInfo:
    """What is known of the client at the other end of one connection."""

    client_host: str
    """In Kafka's notation: ``/127.0.0.1``."""
    listener: str = ""
    """The name of the listener; empty: the main one of the node."""
    software_name: str = ""
    """From ApiVersions v3 and later; empty before it, and for older clients."""
    software_version: str = ""
    authentication: Authentication | None = None
    """None: the listener has no SASL."""
    seen_login: Login | None = None
    """Of a connection that is only watched; None: its client has not begun to authenticate."""
    tls: TlsParameters | None = None
    """None: the listener has no TLS, or the handshake has not ended."""
    principal: str = ANONYMOUS
    """The user of SASL, or the subject of the certificate (`ssl.principal.mapping.rules`), as Kafka's ``Type:name``."""
    client_port: int = 0


class FurtherParts(Protocol):
    """The parts of the broker that fewer handlers use. One field for all: each costs every request 40 ns."""

    @property
    def kafka_version(self) -> KafkaVersion: ...
    @property
    def log_manager(self) -> LogManager: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...
    @property
    def share_groups(self) -> ShareGroups: ...
    @property
    def client_metrics(self) -> ClientMetrics: ...


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class RequestContext:
    """The parts of the broker that handlers use, and the circumstances of one request.

    Handlers read no clock: ``now_ms`` is the broker's time at which the request arrived.
    """

    coordinator: GroupCoordinator
    cluster: Cluster
    settings: DynamicSettings
    parts: FurtherParts
    node: Node
    """The broker that has the listener of the connection."""
    connection: ConnectionInfo
    api_key: int
    api_version: int
    client_id: str
    now_ms: int

    @property
    def kafka_version(self) -> KafkaVersion:
        """The Kafka version that the broker imitates."""
        return self.parts.kafka_version

    @property
    def log_manager(self) -> LogManager:
        """The logs of all partitions."""
        return self.parts.log_manager

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator, made at its first use."""
        return self.parts.transactions

    @property
    def share_groups(self) -> ShareGroups:
        """The share groups, made at their first use."""
        return self.parts.share_groups

    @property
    def client_metrics(self) -> ClientMetrics:
        """The subscriptions of clients to metrics, made at their first use."""
        return self.parts.client_metrics

    def behavior(self, area: type[B]) -> B:
        """Return the switches of one area for the broker's Kafka version."""
        return self.parts.kafka_version.behavior(area)
