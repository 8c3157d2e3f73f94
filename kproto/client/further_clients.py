"""The clients beside the user's consumer: consumer 2, the checkpoint producer, and the clients of queries."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, TypeVar

import confluent_kafka
from confluent_kafka.admin import AdminClient

C = TypeVar("C")

CALLBACKS = ("stats_cb", "throttle_cb", "error_cb", "statistics.interval.ms")
"""The user's callbacks for which a client has to be polled."""
LOGGER = "logger"
POLL_INTERVAL_S = 1.0
"""How often the clients are polled that have no other work: their events wait in a queue without a limit."""


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
        self._polled: weakref.WeakSet[Any] = weakref.WeakSet()
        """The producers and admin clients."""
        self._is_polling = False
        self.next_poll_at: float = 0.0 if self._callbacks or LOGGER in librdkafka else math.inf
        """When `poll` has to be called next, on the monotonic clock."""

    def consumer(self, config: Mapping[str, Any]) -> confluent_kafka.Consumer:
        """Return a consumer that the caller polls."""
        return self._opened(FurtherConsumer({**config, **self._callbacks, **self._credentials}))

    def query_consumer(self, config: Mapping[str, Any]) -> confluent_kafka.Consumer:
        """Return a consumer that the caller polls within `poll`, while no thread uses it."""
        callbacks = {name: self._while_polled(each) for name, each in self._callbacks.items()}
        return self._opened(FurtherConsumer({**config, **callbacks, **self._credentials}))

    def producer(self, config: Mapping[str, Any]) -> confluent_kafka.Producer:
        """Return a producer, which `poll` polls, too."""
        return self._opened(FurtherProducer({**config, **self._callbacks, **self._credentials}), self._polled)

    def admin(self, config: Mapping[str, Any]) -> AdminClient:
        """Return an admin client, which `poll` polls."""
        return self._opened(AdminClient({**config, **self._callbacks, **self._credentials}), self._polled)

    def _opened(self, client: C, *further: weakref.WeakSet[Any]) -> C:
        for clients in (self._open, *further):
            clients.add(client)
        return client

    def _while_polled(self, callback: Any) -> Any:
        """Return a callback that the user's thread runs only: another thread may close the client."""
        if not callable(callback):
            return callback

        def call(*args: Any) -> Any:
            return callback(*args) if self._is_polling else None

        return call

    def poll(self, poll_queries: Callable[[], None]) -> None:
        """Run the user's callbacks for the clients that no other call polls, if it is time; raise their exceptions.

        Not in a callback of librdkafka: a callback in another one has no end of its own for confluent-kafka.

        Args:
            poll_queries: polls the consumers of queries.
        """
        now = monotonic()
        if now < self.next_poll_at:
            return
        self.next_poll_at = now + POLL_INTERVAL_S
        self._is_polling = True
        try:
            for client in list(self._polled):
                client.poll(0)
            poll_queries()
        finally:
            self._is_polling = False

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these credentials in the next connections of all clients, also of those that are open."""
        self._credentials = {"sasl.username": username, "sasl.password": password}
        for client in list(self._open):
            client.set_sasl_credentials(username, password)
