"""A broker in your own process: for trio, asyncio and blocking code.

The broker has a thread and an event loop of its own, so it responds whatever your code does: a blocking client in an
async test does not starve it, and a virtual clock of your event loop does not stop it::

    with Broker.running() as broker:                  # blocking code
        KafkaConsumer(bootstrap_servers=broker.bootstrap_servers)

    async with Broker(brokers=3) as broker:           # trio, or asyncio through anyio
        ...

Methods may be called from any thread or task. Each runs in the broker's thread between two requests, in well under a
millisecond.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from kproto_server.broker.clock import BrokerClock
from kproto_server.broker.groups import BrokerGroups
from kproto_server.broker.requests import BrokerRequests
from kproto_server.clock import ClockMode
from kproto_server.configuration.data_directory import DataDirectory
from kproto_server.configuration.listeners import Address
from kproto_server.configuration.settings import Settings
from kproto_server.network.listening import bracketed, open_sockets
from kproto_server.observation.request_log import REQUESTS_MAX
from kproto_server.releases.kafka_version import KafkaVersion

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from kproto_server.network.event_loop import EventLoop
    from kproto_server.network.server import Server
    from kproto_server.observation.observe import Observations, Snapshot

T = TypeVar("T")

logger = logging.getLogger("kproto")

THREAD_CHECK_S = 0.1
"""How often a caller that waits for the broker's thread checks that the thread is alive."""


class BrokerOptions(TypedDict, total=False):
    """The arguments of `Broker`, where they are described."""

    kafka_version: str | KafkaVersion
    brokers: int
    started: int | None
    settings: Mapping[str, object] | Settings | None
    host: str
    port: int
    clock: str | ClockMode
    data: DataDirectory | str | None
    requests_kept: int


class Broker:
    """A broker of one or more nodes, listening on loopback.

    Args:
        kafka_version: the release to emulate, ``"0.8.2"`` to ``"4.4"``, or ``"latest"``: all API versions of all
            releases.
        brokers: the number of nodes; each has a node id (from 1) and a port of its own.
        started: the number of nodes that run at first (all by default). The others have an address and have never
            registered; `start_node` starts them.
        settings: Kafka's broker settings by name: ``{"offsets.retention.minutes": 60}``.
        host, port: the address of node 1; node N listens on ``port + N - 1``. Port 0: a free port for each node.
        clock: ``"real"``, ``"manual"``, ``"auto"`` or ``"scaled:N"``.
        data: the data directory for offsets and records, in Kafka's format. A path means that commits survive power
            loss; a `DataDirectory` can choose otherwise. None: in memory.
        requests_kept: the number of requests that `requests` keeps, the newest ones, 32 MiB at most; 0: none.

    Ownership: a started broker owns its sockets, its thread and the lock of the data directory; `stop` (or the end of
    the ``with`` block) closes them.

    Raises:
        ValueError: the Kafka version, a setting or the clock is unknown, or a number is out of range.
        CannotListen: (from `start`) an address is in use.
        LogError: (from `start`) the data directory is in use, damaged or unreadable.
        RuntimeError: (from the other methods and properties) the broker is not running, or its thread has failed.
    """

    def __init__(
        self,
        *,
        kafka_version: str | KafkaVersion = "latest",
        brokers: int = 1,
        started: int | None = None,
        settings: Mapping[str, object] | Settings | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: str | ClockMode = "real",
        data: DataDirectory | str | None = None,
        requests_kept: int = REQUESTS_MAX,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"a broker has at least one node, not {brokers}")
        if started is not None and not 1 <= started <= brokers:
            raise ValueError(f"of {brokers} nodes 1 to {brokers} can be started, not {started}")
        if requests_kept < 0:
            raise ValueError(f"{requests_kept} requests can't be kept")
        self.kafka_version: KafkaVersion = (
            kafka_version if isinstance(kafka_version, KafkaVersion) else KafkaVersion.named(kafka_version)
        )
        self.settings: Settings = _settings(settings, self.kafka_version)
        self.clock: BrokerClock = BrokerClock(self._call)
        self.groups: BrokerGroups = BrokerGroups(self._call)
        self.requests: BrokerRequests = BrokerRequests(self._call)
        self._clock_mode = clock if isinstance(clock, ClockMode) else ClockMode.parse(clock)
        self._data = DataDirectory(data) if isinstance(data, str) else data
        self._address = host, port, brokers
        self._started = started
        self._requests_kept = requests_kept
        self._lifetime = threading.Lock()
        """Held while the broker starts or stops."""
        self._thread: threading.Thread | None = None
        self._server: Server | None = None
        self._failure: BaseException | None = None
        """The exception that ended the thread; None: it runs, or `stop` ended it."""

    @classmethod
    @contextmanager
    def running(cls, **options: Unpack[BrokerOptions]) -> Iterator[Self]:
        """Run a broker for the length of a ``with`` block; the arguments are those of `Broker`."""
        with cls(**options) as broker:
            yield broker

    # -- lifetime

    def start(self) -> None:
        """Listen and serve; return when every started node responds.

        Raises:
            RuntimeError: the broker runs already.
            CannotListen: an address is in use.
            LogError: the data directory is in use, damaged or unreadable.
        """
        with self._lifetime:
            if self._thread is not None:
                raise RuntimeError("this broker is running already")
            self._start()

    def _start(self) -> None:
        host_name, port, count = self._address
        sockets = open_sockets(host_name, tuple(port + i if port else 0 for i in range(count)), self._started)
        try:
            loop, server = self._assemble(sockets)
        except BaseException:
            for sock in sockets:
                sock.close()
            raise
        node_sockets = dict(zip(server.state.cluster.nodes, sockets, strict=True))
        ready = threading.Event()
        self._failure = None

        def run() -> None:
            try:
                loop.run(lambda: server.main(node_sockets, ready.set))
            except BaseException as error:  # raised again by the next call from a user's thread
                logger.exception("the broker has failed")
                self._failure = error
            finally:
                ready.set()

        self._thread = threading.Thread(target=run, name="kproto-broker", daemon=True)
        self._server = server
        try:
            self._thread.start()
            ready.wait()
        except KeyboardInterrupt:  # no `with` block has begun that would end the thread
            ready.wait()
            self._stop()
            raise
        if self._failure is not None:
            self._stop()

    def _assemble(self, sockets: list[socket.socket]) -> tuple[EventLoop, Server]:
        from kproto_server.broker.assembly import assemble

        return assemble(
            sockets,
            advertised=Address(self._address[0], 0),
            kafka_version=self.kafka_version,
            settings=self.settings,
            clock_mode=self._clock_mode,
            started=self._started,
            data=self._data,
            requests_kept=self._requests_kept,
        )

    def stop(self) -> None:
        """Respond to the requests already read, close every connection and end the thread; idempotent.

        Raises:
            RuntimeError: the broker's thread had failed.
        """
        with self._lifetime:
            if self._thread is not None:
                self._stop()

    def _stop(self) -> None:
        assert self._thread is not None
        assert self._server is not None
        with suppress(RuntimeError):  # the thread has ended by itself
            self._post(self._server.stop)
        self._thread.join()
        self._thread = self._server = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise RuntimeError("this broker failed") from failure

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        """Start the broker in a worker thread.

        Cancellation: the broker is stopped again before the cancellation is raised.
        """
        import anyio
        import anyio.to_thread

        try:
            await anyio.to_thread.run_sync(self.start)
        except BaseException:  # cancelled: `start` goes on in its thread, and `stop` waits for it
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.stop)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the broker in a worker thread.

        Cancellation: shielded; it takes half a second at most.
        """
        import anyio
        import anyio.to_thread

        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.stop)

    # -- for tests

    @property
    def bootstrap_servers(self) -> str:
        """Return ``HOST:PORT`` of every node, running or stopped, comma-separated."""
        nodes = self._running_server().state.cluster.nodes.values()
        return ",".join(f"{bracketed(node.host)}:{node.port}" for node in nodes)

    @property
    def observations(self) -> Observations:
        """Return the live observations; while clients are connected, read them through `snapshot`."""
        return self._running_server().observations

    def snapshot(self) -> Snapshot:
        """Return what clients have sent so far, as an immutable copy."""
        return self._call(lambda server: server.observations.snapshot())

    def reset(self, *, new_ports: bool = False) -> None:
        """Make the broker as it was after its start.

        Topics, groups, offsets, observations, requests and changed configs are deleted, stopped nodes started, and the
        clock is set to the wall time. Every connection is closed. A member, a producer or a fetch session from before
        gets the error of an unknown one.

        A client from before that connects again and begins with a JoinGroup without a member id cannot be
        distinguished from a new client. With ``new_ports`` it finds no broker: the nodes listen on other ports, which
        `bootstrap_servers` has.
        """
        self._call(lambda server: server.reset(new_ports=new_ports))

    def stop_node(self, node_id: int) -> None:
        """Stop one node: its connections are closed, and its partitions get other leaders.

        Raises:
            UsageError: the node does not exist or is stopped; the text has all nodes with their states.
        """
        self._call(lambda server: server.stop_node(node_id))

    def start_node(self, node_id: int) -> None:
        """Start a node on its address; nothing happens if it runs.

        Raises:
            UsageError: the node does not exist; the text has all nodes with their states.
        """
        self._call(lambda server: server.start_node(node_id))

    def _call(self, action: Callable[[Server], T]) -> T:
        """Run an action in the broker's thread and return its result (`RunInBrokerThread`)."""
        server = self._running_server()
        done = threading.Event()
        result: list[T] = []
        failure: list[BaseException] = []

        def run() -> None:
            try:
                result.append(action(server))
            except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
                failure.append(error)
            finally:
                done.set()

        self._post(run)
        while not done.wait(THREAD_CHECK_S):
            self._running_server()
        if failure:
            raise failure[0]
        return result[0]

    def _running_server(self) -> Server:
        server, thread = self._server, self._thread
        if self._failure is not None:
            raise RuntimeError("this broker failed") from self._failure
        if server is None or thread is None or not thread.is_alive():
            raise RuntimeError("this broker is not running")
        return server

    def _post(self, action: Callable[[], object]) -> None:
        """Schedule an action in the broker's thread, between two requests.

        Raises:
            RuntimeError: the broker has ended.
        """
        server, thread = self._server, self._thread
        if server is None or thread is None or server.token is None:
            raise RuntimeError("this broker is not running")
        try:
            server.token.run_sync_soon(action)
        except RuntimeError:  # trio's error for a run that has ended
            thread.join()
            self._running_server()
            raise


def _settings(given: Mapping[str, object] | Settings | None, kafka_version: KafkaVersion) -> Settings:
    if isinstance(given, Settings):
        return given
    return Settings.from_mapping({name: str(value) for name, value in (given or {}).items()}, kafka_version)


__all__ = ["Broker", "BrokerClock", "DataDirectory"]
