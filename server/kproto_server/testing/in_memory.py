"""A broker and its clients in one thread: a server's own decisions, codecs and connections, without sockets."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TYPE_CHECKING

from kproto.client_connection import ClientConnection
from kproto_server.clock import Clock, ClockMode
from kproto_server.cluster.cluster import Cluster
from kproto_server.configuration.settings import Settings
from kproto_server.connection.connection import Connection
from kproto_server.connection.connection_state import BACKLOGGED
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.coordinator.expiration_task import ExpirationTask
from kproto_server.observation.observe import Observations
from kproto_server.releases.kafka_version import LATEST, KafkaVersion
from kproto_server.requests.context import ConnectionInfo
from kproto_server.state import BrokerState
from kproto_server.throttling.endpoints import install as install_throttling
from kproto_server.transactions.tasks import transaction_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto.message import Request, Response
    from kproto_server.clock import Timer
    from kproto_server.faults.active_rules import ActiveRules

START_MS = 1_700_000_000_000
"""The time at which a virtual clock starts, in ms since the epoch."""
DAY_MS = 86_400_000


def virtual_clock(now_ms: int = START_MS) -> Clock:
    """Return a clock that moves only by `Clock.advance`, which runs the timers that expire meanwhile."""
    return Clock(float(now_ms), 0.0, ClockMode(rate=0.0))


class InMemoryBroker:
    """The broker without network and storage. One thread uses it; nothing has to be closed."""

    def __init__(
        self,
        *,
        kafka_version: str = LATEST,
        settings: Mapping[str, str] | None = None,
        topics: Mapping[str, int] | None = None,
        brokers: int = 1,
        seed: int = 0,
        clock: Clock | None = None,
    ) -> None:
        """Make a broker with these topics (name: partitions); ``seed`` determines topic ids and member ids.

        ``clock``: None: a virtual clock that starts at `START_MS`.

        Raises:
            ValueError: the Kafka version or a setting is unknown, or a topic cannot be created.
        """
        version = KafkaVersion.named(kafka_version)
        configured = Settings.from_mapping(settings or {}, version)
        addresses = [("127.0.0.1", 9092 + index) for index in range(brokers)]
        random_bytes = Random(seed).randbytes  # noqa: S311 - ids that are the same in each run
        cluster = Cluster.of(addresses, kafka_version=version, settings=configured, random_bytes=random_bytes)
        self.clock: Clock = clock or virtual_clock()
        self.state: BrokerState = BrokerState(version, configured, cluster, self.clock)
        self.observations: Observations = Observations()
        self.dispatcher: Dispatcher = Dispatcher(self.state, self.observations)
        if cluster.authorizer is not None:
            from kproto_server.authorization.table import install

            install(self.dispatcher)
        install_throttling(self.dispatcher)
        self._faults: ActiveRules | None = None
        for name, partition_count in (topics or {}).items():
            created = cluster.create_topic(name, partition_count=partition_count, replication_factor=1)
            if isinstance(created, int):
                raise ValueError(f"topic {name!r} cannot be created: error {created}")
        ExpirationTask(self.state.coordinator, self.clock).start()
        for task in transaction_tasks(lambda: self.state.used_transactions, self.state.settings, self.clock):
            task.start()

    @property
    def faults(self) -> ActiveRules:
        """The fault rules, made at their first use."""
        if self._faults is None:
            from kproto_server.faults.active_rules import ActiveRules

            self._faults = ActiveRules(self.dispatcher, lambda seed: Random(seed).random)  # noqa: S311 - reproducible
        return self._faults

    def connect(self, client_id: str = "test", *, node_id: int = 1) -> ConnectedPair:
        """Return a new connection to a node, with the client's end of it.

        Raises:
            KeyError: the node does not exist.
        """
        return ConnectedPair(self, client_id, node_id)

    def advance(self, *, days: float = 0, milliseconds: float = 0) -> None:
        """Advance the clock: timers run in order, and delayed operations that end deliver their responses."""
        self.clock.advance(days * DAY_MS + milliseconds)
        self.deliver()

    def deliver(self) -> None:
        """Deliver the responses of delayed operations that are complete; `send` and `advance` call this."""
        while runnable := self.dispatcher.take_runnable():
            for connection in runnable:
                if connection.on_runnable is not None:
                    connection.on_runnable()


class BrokerEnd:
    """The broker's end of one connection: bytes of requests in, bytes of responses out."""

    def __init__(self, broker: InMemoryBroker, node_id: int, send: Callable[[bytes], object]) -> None:
        """``send``: called with bytes of responses."""
        self._broker = broker
        self._send = send
        self.connection: Connection = Connection(
            broker.dispatcher, broker.state.cluster.nodes[node_id], ConnectionInfo("/127.0.0.1")
        )
        self.connection.on_runnable = self._on_runnable
        self._deadline: Timer | None = None

    @property
    def close_reason(self) -> str | None:
        """Why the broker closes the connection; None: it stays open."""
        return self.connection.close_reason

    def receive(self, data: bytes) -> None:
        """Handle the bytes of one read; the responses that are not delayed are sent when this returns."""
        self._respond(self.connection.receive(data, self._broker.clock.now_ms()))
        self._broker.deliver()

    def close(self) -> None:
        """Note that the client has closed the connection: a delayed operation is abandoned."""
        self._cancel_deadline()
        self.connection.abandon()

    def _respond(self, data: bytes) -> None:
        """Send responses, and set the timer of the operation that is delayed now."""
        if data:
            self._send(data)
        while self.connection.state is BACKLOGGED:  # the client has taken the responses so far
            self._send(self.connection.proceed(self._broker.clock.now_ms()))
        self._cancel_deadline()
        deadline_ms = self.connection.deadline_ms
        if deadline_ms is not None:
            self._deadline = self._broker.clock.call_at(deadline_ms, self._end_delay)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end_delay(self) -> None:
        self._respond(self.connection.resume(self._broker.clock.now_ms()))

    def _on_runnable(self) -> None:
        if self.connection.is_delay_complete:
            self._end_delay()
        else:
            self._respond(self.connection.proceed(self._broker.clock.now_ms()))


class ConnectedPair(BrokerEnd):
    """Both ends of one connection: request values in, response values out, and bytes between them."""

    def __init__(self, broker: InMemoryBroker, client_id: str, node_id: int) -> None:
        super().__init__(broker, node_id, self._arrive)
        self.client: ClientConnection = ClientConnection(client_id)
        self.responses: deque[Response] = deque()
        """Responses that have arrived, oldest first; a test removes those that it has read."""

    def send(self, request: Request, version: int) -> None:
        """Send a request. Its response, unless it is delayed, is in `responses` when this returns.

        Raises:
            EncodeError: a field's value cannot be written in this version.
            UnsupportedVersion: the version is not declared.
        """
        self.send_bytes(self.client.send(request, version))

    def send_bytes(self, data: bytes) -> None:
        """Send any bytes; `close_reason` says whether the broker closes the connection for them."""
        self.receive(data)

    def ask(self, request: Request, version: int) -> Response:
        """Send a request and return its response.

        Raises:
            TimeoutError: the response is delayed; advance the clock or let another client act, and read `responses`.
                Or the broker closes the connection, for the reason that the text has.
        """
        arrived = len(self.responses)
        self.send(request, version)
        # Responses arrive in the order of the requests: if any is in flight, this one is.
        if self.client.in_flight or len(self.responses) == arrived:
            name = type(request).__name__
            if self.close_reason is not None:
                raise TimeoutError(f"no response to {name}: the broker closes the connection: {self.close_reason}")
            raise TimeoutError(f"the response to {name} is delayed")
        return self.responses.pop()

    def _arrive(self, data: bytes) -> None:
        self.responses.extend(received.response for received in self.client.receive(data))
