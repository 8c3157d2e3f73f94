"""Connections above the rate at which they may be made (KIP-612).

Above the rate of a node (``max.connection.creation.rate``), or of one of its listeners, a new connection waits until it
is accepted. One of an address above its rate (the quota ``connection_creation_rate``) is accepted, never read, and
closed behind its throttle time. Both times are one window at most. Source: measured on 4.4.0, addresses also on 2.8.2
(tests/throttling/test_connections.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.jvm.addresses import host_address
from kproto_server.quotas.entities import CONNECTION_CREATION_RATE, IP
from kproto_server.quotas.rate import Window

if TYPE_CHECKING:
    from kproto_server.clock import Clock
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.quotas.entities import Quotas
    from kproto_server.quotas.rate import RateKey

SETTING = "max.connection.creation.rate"
UNLIMITED = 2**31 - 1
LOOPBACK = {"127.0.0.1": "localhost"}
"""Other names that quotas may have for an address."""


class ConnectionRates:
    """The rates of new connections on all nodes."""

    def __init__(self, cluster: Cluster, settings: DynamicSettings, clock: Clock) -> None:
        self._cluster = cluster
        self._settings = settings
        self._clock = clock
        self._quotas: Quotas = {}
        """The client quotas of which `_limits` are."""
        self._limits: dict[str | None, float] = {}
        """By address or name; None: of all others."""

    def listener_ms(self, node_id: int, listener: str) -> int:
        """Record a new connection of a node's listener; return how long it waits."""
        settings = self._settings.of(node_id)
        throttle_ms = 0
        for name in ("", listener):
            limit = settings.int(SETTING) if not name else settings.int_of_listener(name, SETTING)
            if limit is not None and limit != UNLIMITED:
                throttle_ms = max(throttle_ms, self._record((node_id, SETTING, name, None), limit))
        return throttle_ms

    def address_ms(self, node_id: int, listener: str, ip: str) -> int:
        """Record a new connection of an address; return 0 if it is accepted, otherwise after how long it is closed.

        A connection that is not accepted counts neither for the address nor for the listener.
        """
        limit = self._limit_of_address(ip)
        if limit is None:
            return 0
        key: RateKey = (node_id, CONNECTION_CREATION_RATE, ip, None)
        throttle_ms = self._record(key, limit)
        if throttle_ms:
            usage, now_ms = self._cluster.quota_usage, self._clock.now_ms()
            for counted in {key, (node_id, SETTING, "", None), (node_id, SETTING, listener, None)}:
                if counted in usage.rates:
                    usage.unrecord(counted, 1.0, self._window, now_ms)
        return throttle_ms

    def _limit_of_address(self, ip: str) -> float | None:
        if self._cluster.client_quotas is not self._quotas:
            self._quotas = self._cluster.client_quotas
            self._limits = _limits(self._quotas)
        for name in (ip, LOOPBACK.get(ip, ip), None):
            if name in self._limits:
                return self._limits[name]
        return None

    @property
    def _window(self) -> Window:
        current = self._settings.current
        return Window(current.int("quota.window.num"), current.int("quota.window.size.seconds") * 1000)

    def _record(self, key: RateKey, limit: float) -> int:
        window = self._window
        return min(window.size_ms, self._cluster.quota_usage.record(key, 1.0, limit, window, self._clock.now_ms()))


def _limits(quotas: Quotas) -> dict[str | None, float]:
    """Return the rates of addresses. A quota may have an IPv6 address in any form."""
    limits = {}
    for ((kind, name), *_), values in quotas.items():
        if kind == IP and CONNECTION_CREATION_RATE in values:
            limits[name and host_address(name)] = values[CONNECTION_CREATION_RATE]
    return limits
