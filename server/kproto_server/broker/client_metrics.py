"""The metrics that clients push to a running broker, and the subscriptions to them, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.messages.k33_alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kproto_server.broker.own_requests import ask, check
from kproto_server.client_metrics.configs import INTERVAL, INTERVAL_DEFAULT_MS, MATCH, METRICS, subscription
from kproto_server.handlers._config_resources import ResourceType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.client_metrics.subscriptions import PushedMetrics
    from kproto_server.network.server import Server

VERSION = 2
"""The newest version of the request."""


class ClientMetricsSubscription(NamedTuple):
    """A client metrics resource: the clients that match it are subscribed to its metrics."""

    name: str
    metrics: tuple[str, ...]
    """Prefixes of the names of metrics; `*`: all."""
    interval_ms: int
    match: tuple[str, ...]
    """``attribute=expression`` for each attribute that a client must have; without any, all clients match."""


class ClientMetricsPush(NamedTuple):
    """Metrics that a client has pushed."""

    time_ms: int
    node_id: int
    client_instance_id: str
    client_id: str
    software_name: str
    software_version: str
    subscription_id: int
    is_terminating: bool
    compression: str
    """none, gzip, snappy, lz4 or zstd."""
    payload: bytes
    """As the client has sent it."""
    content: bytes | None
    """Uncompressed: an OTLP ``MetricsData``. None: it cannot be uncompressed, or a package for it is missing."""


class BrokerClientMetrics:
    """The metrics that clients push to a running broker (KIP-714), and the subscriptions to them.

    Clients push if the setting ``client.telemetry.receiver.enable`` is true and a subscription matches them.
    """

    def __init__(self, run: RunInBrokerThread) -> None:
        self._run = run

    def subscriptions(self) -> tuple[ClientMetricsSubscription, ...]:
        """Return the client metrics resources, in the order in which they were set first."""

        def described(server: Server) -> tuple[ClientMetricsSubscription, ...]:
            state = server.state
            found = {
                name: (configs, subscription(configs, state.kafka_version))
                for name, configs in state.settings.client_metrics.items()
            }
            return tuple(
                ClientMetricsSubscription(name, one.metrics, one.interval_ms, _items(configs.get(MATCH, "")))
                for name, (configs, one) in found.items()
            )

        return self._run(described)

    def subscribe(
        self,
        name: str,
        metrics: Sequence[str] = ("*",),
        *,
        interval_ms: int = INTERVAL_DEFAULT_MS,
        match: Sequence[str] = (),
    ) -> None:
        """Set a client metrics resource, as ``kafka-client-metrics.sh`` does.

        Args:
            name: the name of the resource.
            metrics: prefixes of the names of metrics; `*`: all.
            interval_ms: how often a client pushes.
            match: ``attribute=expression`` for each attribute that a client must have, such as ``client_id=app-.*``.

        Raises:
            RequestRefused: a value is invalid, or the release has no client metrics.
        """
        given = list(match)
        configs = {METRICS: ",".join(metrics), INTERVAL: str(interval_ms)} | ({MATCH: ",".join(given)} if given else {})
        self._run(lambda server: _replace(server, name, configs))

    def unsubscribe(self, name: str) -> None:
        """Remove a client metrics resource; nothing happens if there is none.

        Raises:
            RequestRefused: the release has no client metrics.
        """
        self._run(lambda server: _replace(server, name, {}))

    def pushes(self, client_id: str | None = None) -> tuple[ClientMetricsPush, ...]:
        """Return the newest pushes that the broker has accepted, the oldest one first.

        Args:
            client_id: only those of clients with this client id.
        """

        def found(server: Server) -> tuple[ClientMetricsPush, ...]:
            used = server.state.used_client_metrics
            return tuple(
                _push(one) for one in (used.pushes if used else ()) if client_id in (None, one.client.client_id)
            )

        return self._run(found)


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _push(pushed: PushedMetrics) -> ClientMetricsPush:
    client = pushed.client
    return ClientMetricsPush(
        time_ms=pushed.time_ms,
        node_id=pushed.node_id,
        client_instance_id=client.client_instance_id,
        client_id=client.client_id,
        software_name=client.client_software_name,
        software_version=client.client_software_version,
        subscription_id=pushed.subscription_id,
        is_terminating=pushed.is_terminating,
        compression=pushed.compression.name.lower(),
        payload=pushed.payload,
        content=pushed.content,
    )


def _replace(server: Server, name: str, configs: Mapping[str, str]) -> None:
    resource = AlterConfigsResource(
        resource_type=ResourceType.CLIENT_METRICS,
        resource_name=name,
        configs=tuple(AlterableConfig(name=one, value=value) for one, value in configs.items()),
    )
    (result,) = ask(server, AlterConfigsRequest(resources=(resource,), validate_only=False), VERSION).responses
    check(f"client metrics {name!r}", result.error_code, result.error_message)
