"""A broker in your own process: for trio, asyncio and plain blocking code.

The broker has a thread and a loop of its own, so it answers whatever your code does: a blocking client in an async
test does not starve it, and a virtual clock of yours does not stop it::

    with Broker.running() as broker:                  # blocking code
        KafkaConsumer(bootstrap_servers=broker.bootstrap_servers)

    async with Broker(brokers=3) as broker:           # trio, or asyncio through anyio
        ...

Methods may be called from any thread or task; each is carried out between two requests, in well under a millisecond.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from kproto_server.broker.groups import BrokerGroups
from kproto_server.broker.requests import BrokerRequests
from kproto_server.clock import ClockMode
from kproto_server.configuration.data_directory import DataDirectory
from kproto_server.configuration.settings import Settings
from kproto_server.network.listening import bracketed, open_sockets
from kproto_server.observation.request_log import REQUESTS_MAX
from kproto_server.releases.kafka_version import KafkaVersion

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from kproto_server.network.event_loop import Host
    from kproto_server.network.server import Server
    from kproto_server.observation.observe import Observations, Snapshot

T = TypeVar("T")

logger = logging.getLogger("kproto")

THREAD_CHECK_S = 0.1
"""How often a caller that waits for the broker's thread sees to it that there still is one."""


class BrokerOptions(TypedDict, total=False):
    """The arguments of `Broker`, which says what they mean."""

    kafka_version: str | KafkaVersion
    brokers: int
    started: int | None
    settings: Mapping[str, object] | Settings | None
    host: str
    port: int
    clock: str | ClockMode
    data: DataDirectory | str | None
    requests_kept: int


class BrokerClock:
    """The broker's time (D7), from outside."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def now_ms(self) -> int:
        """Broker time in milliseconds since the epoch."""
        return self._broker._call(lambda server: server.host.clock.now_ms())

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, milliseconds: float = 0
    ) -> None:
        """Move broker time forward; what falls due meanwhile happens in its order, and is in the log in the end.

        Raises:
            ValueError: time does not go back.
        """
        total_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
        self._broker._call(lambda server: server.advance(total_ms))


class Broker:
    """A broker of one or more nodes, listening on loopback.

    Args:
        Kafka version: the Kafka release to be, ``"0.8.2"`` to ``"4.4"``, or ``"latest"``: all versions of all releases.
        brokers: how many nodes, each with a node id (from 1) and a port of its own.
        started: how many of them are up at first (all); the others have an address, but were never seen: `start_node`.
        settings: Kafka's broker settings by name: ``{"offsets.retention.minutes": 60}``.
        host, port: where to listen; port 0 is a free one, else node N listens on ``port + N - 1``.
        clock: ``"real"``, ``"manual"``, ``"auto"`` or ``"scaled:N"``.
        data: the directory that offsets are kept in, in Kafka's own format; a `DataDirectory` says how sure to make of
            each commit (a path alone: power loss does it no harm). None: in memory.
        requests_kept: how many requests `requests` has, the newest ones, as far as 32 MiB go; 0: none are kept.

    Raises:
        ValueError: an unknown Kafka version, setting or clock, or a number below 0.
        CannotListen: (when it starts) an address is taken.
        LogError: (when it starts) the data directory is in use, damaged, or can't be read.
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
        self.clock: BrokerClock = BrokerClock(self)
        self.groups: BrokerGroups = BrokerGroups(self)
        self.requests: BrokerRequests = BrokerRequests(self)
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
        """What ended the thread, if it was not `stop`."""

    @classmethod
    @contextmanager
    def running(cls, **options: Unpack[BrokerOptions]) -> Iterator[Self]:
        """Start a broker for the length of a ``with`` block; the arguments are those of `Broker`."""
        with cls(**options) as broker:
            yield broker

    # -- lifetime

    def start(self) -> None:
        """Listen and serve; returns once every node answers.

        Raises:
            RuntimeError: it is running already.
            CannotListen: an address is taken.
        """
        with self._lifetime:
            if self._thread is not None:
                raise RuntimeError("this broker is running already")
            self._start()

    def _start(self) -> None:
        host_name, port, count = self._address
        sockets = open_sockets(host_name, tuple(port + i if port else 0 for i in range(count)), self._started)
        try:
            host, server = self._assemble(sockets)
        except BaseException:
            for sock in sockets:
                sock.close()
            raise
        node_sockets = dict(zip(server.state.cluster.nodes, sockets, strict=True))
        ready = threading.Event()
        self._failure = None

        def run() -> None:
            try:
                host.run(lambda: server.main(node_sockets, ready.set))
            except BaseException as error:  # told to whoever starts, stops or asks the broker
                logger.exception("the broker has failed")
                self._failure = error
            finally:
                ready.set()

        self._thread = threading.Thread(target=run, name="kproto-broker", daemon=True)
        self._server = server
        try:
            self._thread.start()
            ready.wait()
        except KeyboardInterrupt:  # there will be no `with` block that ends the thread
            ready.wait()
            self._stop()
            raise
        if self._failure is not None:
            self._stop()

    def _assemble(self, sockets: list[socket.socket]) -> tuple[Host, Server]:
        from kproto_server.broker.assembly import assemble

        return assemble(
            sockets,
            advertised_host=self._address[0],
            kafka_version=self.kafka_version,
            settings=self.settings,
            clock_mode=self._clock_mode,
            started=self._started,
            data=self._data,
            requests_kept=self._requests_kept,
        )

    def stop(self) -> None:
        """Answer what was read, close every connection and end the thread; nothing happens if it is not running.

        Raises:
            RuntimeError: the broker had ended before, by a defect of its own.
        """
        with self._lifetime:
            if self._thread is not None:
                self._stop()

    def _stop(self) -> None:
        assert self._thread is not None
        assert self._server is not None
        with suppress(RuntimeError):  # it has ended by itself
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
        import anyio
        import anyio.to_thread

        try:
            await anyio.to_thread.run_sync(self.start)
        except BaseException:  # cancelled: the start goes on in its thread, and `stop` waits for its end
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.stop)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import anyio
        import anyio.to_thread

        with anyio.CancelScope(shield=True):  # at most the half second that draining takes
            await anyio.to_thread.run_sync(self.stop)

    # -- what tests ask

    @property
    def bootstrap_servers(self) -> str:
        """``HOST:PORT`` of every node, up or not, comma-separated, as clients take it."""
        nodes = self._running_server().state.cluster.nodes.values()
        return ",".join(f"{bracketed(node.host)}:{node.port}" for node in nodes)

    @property
    def observations(self) -> Observations:
        """What clients did so far; read it through `snapshot` while clients are at work."""
        return self._running_server().observations

    def snapshot(self) -> Snapshot:
        """Return what clients did so far, as a copy that no longer changes."""
        return self._call(lambda server: server.observations.snapshot())

    def reset(self) -> None:
        """Forget topics, groups, offsets, observations and requests; stopped nodes come back. Connections stay open."""
        self._call(lambda server: server.reset())

    def stop_node(self, node_id: int) -> None:
        """Take one node down: connections are cut, its partitions find other leaders.

        Raises:
            KeyError: no such node, or it is down.
        """
        self._call(lambda server: server.stop_node(node_id))

    def start_node(self, node_id: int) -> None:
        """Bring a node back on its old address.

        Raises:
            KeyError: no such node.
        """
        self._call(lambda server: server.start_node(node_id))

    def _call(self, action: Callable[[Server], T]) -> T:
        """Carry out an action in the broker's thread and return its result."""
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
        """Have an action run in the broker's thread, between two requests.

        Raises:
            RuntimeError: the broker has ended.
        """
        server, thread = self._server, self._thread
        if server is None or thread is None or server.token is None:
            raise RuntimeError("this broker is not running")
        try:
            server.token.run_sync_soon(action)
        except RuntimeError:  # trio's word for a run that is over
            thread.join()
            self._running_server()
            raise


def _settings(given: Mapping[str, object] | Settings | None, kafka_version: KafkaVersion) -> Settings:
    if isinstance(given, Settings):
        return given
    return Settings.from_mapping({name: str(value) for name, value in (given or {}).items()}, kafka_version)


__all__ = ["Broker", "BrokerClock", "DataDirectory", "Host"]
