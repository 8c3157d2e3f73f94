"""The clients beside the user's consumer: consumer 2, the checkpoint producer, and the clients of queries."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, TypeVar

import confluent_kafka
from confluent_kafka.admin import AdminClient

C = TypeVar("C")

CALLBACKS = ("stats_cb", "throttle_cb", "error_cb", "statistics.interval.ms")
"""The user's callbacks for which a client has to be polled."""


class FurtherConsumer(confluent_kafka.Consumer):
    """confluent-kafka's, with weak references."""


class FurtherProducer(confluent_kafka.Producer):
    """confluent-kafka's, with weak references."""


class FurtherClients:
    """Opens clients with the user's callbacks, and with the credentials that the user has set last.

    The callers own the clients.
    """

    def __init__(self, librdkafka: Mapping[str, Any]) -> None:
        self._callbacks = {name: librdkafka[name] for name in CALLBACKS if name in librdkafka}
        self._credentials: dict[str, str] = {}
        self._open: weakref.WeakSet[Any] = weakref.WeakSet()

    def consumer(self, config: Mapping[str, Any]) -> confluent_kafka.Consumer:
        """Return a consumer that the caller polls."""
        return self._opened(FurtherConsumer({**config, **self._callbacks, **self._credentials}))

    def query_consumer(self, config: Mapping[str, Any]) -> confluent_kafka.Consumer:
        """Return a consumer without callbacks, as no call polls it."""
        return self._opened(FurtherConsumer({**config, **self._credentials}))

    def producer(self, config: Mapping[str, Any]) -> confluent_kafka.Producer:
        """Return a producer that the caller polls."""
        return self._opened(FurtherProducer({**config, **self._callbacks, **self._credentials}))

    def admin(self, config: Mapping[str, Any]) -> AdminClient:
        """Return an admin client, without callbacks as no call polls it."""
        return self._opened(AdminClient({**config, **self._credentials}))

    def _opened(self, client: C) -> C:
        self._open.add(client)
        return client

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these credentials in the next connections of all clients, also of those that are open."""
        self._credentials = {"sasl.username": username, "sasl.password": password}
        for client in list(self._open):
            client.set_sasl_credentials(username, password)
