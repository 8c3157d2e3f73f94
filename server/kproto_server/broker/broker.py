"""A broker in your own process: for trio, asyncio and blocking code.

The broker has a thread and an event loop of its own, so it responds whatever your code does: a blocking client in an
async test does not starve it, and a virtual clock of your event loop does not stop it::

    with Broker.running() as broker:                  # blocking code
        KafkaConsumer(bootstrap_servers=broker.bootstrap_servers)

    async with Broker(brokers=3) as broker:           # trio, or asyncio through anyio
        ...

Methods may be called from any thread or task. Each runs in the broker's thread between two requests. Most take well
under a millisecond; `clock.advance`, `snapshot`, `restore` and calls on many records take longer, and clients wait
meanwhile.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from kproto.errors import UsageError
from kproto_server.broker.clock import BrokerClock
from kproto_server.broker.controls import BrokerControls
from kproto_server.broker.thread import NOT_RUNNING, BrokerThread
from kproto_server.clock import ClockMode
from kproto_server.configuration.data_directory import DataDirectory
from kproto_server.configuration.listeners import (
    BROKERS_MAX,
    PORT_MAX,
    SETTINGS_OF_LISTENERS,
    Address,
    bracketed,
    check_names_of_listeners,
    listeners_of,
    protocol_name,
)
from kproto_server.configuration.settings import MECHANISMS_SETTING, NEED_SECURITY, Settings
from kproto_server.network.listening import open_sockets
from kproto_server.observation.request_log import REQUESTS_MAX
from kproto_server.releases.kafka_version import KafkaVersion

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from kproto_server.broker.fault_file import Faults
    from kproto_server.broker.open_listeners import OpenListener
    from kproto_server.broker.security import Security, SecurityOptions
    from kproto_server.broker.seed import Seed
    from kproto_server.broker.tls import BrokerTls
    from kproto_server.configuration.listeners import Listener
    from kproto_server.faults.rule import FaultRule
    from kproto_server.network.event_loop import EventLoop
    from kproto_server.network.server import Server
    from kproto_server.observation.observe import Observations

T = TypeVar("T")


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
    faults: Sequence[FaultRule] | str | Faults
    forward_commits: bool
    conditional_commits: bool
    tls: str | None
    tls_directory: str | None
    seed: str | Mapping[str, Any] | Seed | None
    sasl: str | Sequence[str]
    users: Mapping[str, str] | None
    listeners: str | Sequence[str]


class Broker(BrokerControls):
    """A broker of one or more nodes, listening on loopback.

    Args:
        kafka_version: the release to emulate, ``"0.8.2"`` to ``"4.4"``, or ``"latest"``: all API versions of all
            releases.
        brokers: the number of nodes; each has a port and a node id of its own, from ``broker.id`` on (by default 1).
        started: the number of nodes that run at first (all by default). The others have an address and have never
            registered; `start_node` starts them.
        settings: Kafka's broker settings by name: ``{"offsets.retention.minutes": 60}``.
        host, port: the address of the first node; each further node listens on the next port. Port 0: a free port for
            each node.
        clock: ``"real"``, ``"manual"``, ``"auto"`` or ``"scaled:N"``.
        data: the data directory for offsets and records, in Kafka's format. A path means that commits survive power
            loss; ``DataDirectory(path, "os")`` of `kproto_server` is faster, and they survive kills only. None: in
            memory.
        requests_kept: the number of requests that `requests` keeps, the newest ones, 32 MiB at most; 0: none.
        faults: fault rules from the start on, or the path of a YAML file that has them, and conditions of the network;
            `reset` keeps them.
        forward_commits: every node accepts commits of all groups; a real broker responds NOT_COORDINATOR.
        conditional_commits: a commit may name the offset that it expects (see ``FAULTS.md``); no real broker has that.
        tls: the listeners have TLS (security protocol SSL) with a certificate of this kind: ``"auto"``, a right one, or
            one that clients have to refuse: ``"expired"``, ``"not-yet-valid"``, ``"wrong-name"``, ``"unknown-ca"``,
            ``"revoked"``, ``"weak-key"``. None: no TLS.
        tls_directory: keeps the CA, the certificates and the keys; None: a temporary directory.
        seed: topics, records and offsets of groups from the start on, also after `reset`; or the path of a YAML file
            that has them.
        sasl: the listeners have SASL with this mechanism, or these: ``"PLAIN"``, ``"SCRAM-SHA-256"``,
            ``"SCRAM-SHA-512"``, ``"OAUTHBEARER"`` (whose clients bring tokens; ``users`` are not for them).
        users: the passwords of the users of SASL, by name; None: one user ``"kproto"`` with a random password, which
            `client_settings` has.
        listeners: the listeners of each node, as in Kafka's setting: ``"PLAINTEXT://127.0.0.1:0"``, ``"SASL_SSL://:9094"``;
            ``settings`` may have ``advertised.listeners``, ``listener.security.protocol.map``, and the
            ``listener.name.NAME.`` settings of one listener (see ``SECURITY.md``). The first is the main
            one, instead of ``host`` and ``port``; empty: one listener, with all of ``tls`` and ``sasl``.

    Ownership: a started broker owns its sockets, its thread and the lock of the data directory; `stop` (or the end of
    the ``with`` block) closes them.

    Raises:
        ValueError: the Kafka version, a setting or the clock is unknown, a number is out of range, or a fault rule or
            the seed is wrong.
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
        faults: Sequence[FaultRule] | str | Faults = (),
        forward_commits: bool = False,
        conditional_commits: bool = False,
        tls: str | None = None,
        tls_directory: str | None = None,
        seed: str | Mapping[str, Any] | Seed | None = None,
        sasl: str | Sequence[str] = (),
        users: Mapping[str, str] | None = None,
        listeners: str | Sequence[str] = (),
    ) -> None:
        if brokers < 1:
            raise ValueError(f"a broker has at least one node, not {brokers}")
        if brokers > BROKERS_MAX:
            raise ValueError(f"a broker has at most {BROKERS_MAX} nodes, not {brokers}")
        if started is not None and not 1 <= started <= brokers:
            raise ValueError(f"of {brokers} nodes 1 to {brokers} can be started, not {started}")
        if requests_kept < 0:
            raise ValueError(f"{requests_kept} requests can't be kept")
        self.kafka_version: KafkaVersion = (
            kafka_version if isinstance(kafka_version, KafkaVersion) else KafkaVersion.named(kafka_version)
        )
        listener_settings, settings = _listener_settings(settings, listeners)
        users_of, settings = _users_of_listeners(settings)
        self.settings: Settings = _settings(settings, self.kafka_version)
        super().__init__(self._call)
        self._clock_mode = clock if isinstance(clock, ClockMode) else ClockMode.parse(clock)
        self._data = DataDirectory(data) if isinstance(data, str) else data
        self._listeners: Sequence[Listener] = ()
        self._advertised = Address(host, 0)
        if listener_settings:
            self._listeners = listeners_of(listener_settings, has_tls=tls is not None, has_sasl=bool(sasl)).used
            main = next(iter(self._listeners), None)
            if main is not None and main.bound is not None:
                host, port = main.bound.host or "0.0.0.0", main.bound.port  # noqa: S104 - as Kafka
            self._advertised = Address(host, 0) if main is None or main.advertised is None else main.advertised
        port_max = PORT_MAX - brokers + 1
        for first in (port, *(one.bound.port for one in self._listeners if one.bound is not None)):
            if not 0 <= first <= port_max:
                raise ValueError(f"a port that the first of {brokers} nodes listens on is 0 to {port_max}, not {first}")
        protocol = protocol_name(has_tls=tls is not None, has_sasl=bool(sasl))
        self._names = [one.name for one in self._listeners] or [protocol]
        check_names_of_listeners(self.settings, self._names, users_of)
        self._others: list[OpenListener] = []
        self._address = host, port, brokers
        self._started = started
        self._requests_kept = requests_kept
        self._security_options: SecurityOptions | None = None
        self._security: Security | None = None
        """From `start` to `stop`, if the listeners have TLS or SASL."""
        has_tls = tls is not None or tls_directory is not None
        has_security = has_tls or sasl or users or users_of or self.settings.own_stores
        if has_security or self.settings.is_set(MECHANISMS_SETTING) or self.settings.listeners_with(NEED_SECURITY):
            from kproto_server.broker.security import SecurityOptions

            mechanisms = (sasl,) if isinstance(sasl, str) else tuple(sasl)
            self._security_options = SecurityOptions(tls, tls_directory, mechanisms, users or {}, users_of)
            self.settings = self._security_options.checked(self.settings)
        self._faults: Faults | None = None
        if faults or forward_commits or conditional_commits:
            from kproto_server.broker.fault_file import checked_faults

            first = self.settings.first_node_id
            found = checked_faults(faults, self.kafka_version, range(first, first + brokers))
            self._faults = found._replace(
                forward_commits=forward_commits or found.forward_commits,
                conditional_commits=conditional_commits or found.conditional_commits,
            )
        self._seed: Seed | None = None
        if seed is not None:
            from kproto_server.broker.seed import checked_seed

            self._seed = checked_seed(seed, self.kafka_version, self.settings, started or brokers)
        self._lifetime = threading.Lock()
        """Held while the broker starts or stops."""
        self._thread: BrokerThread | None = None
        """From `start` to `stop`."""

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
            UsageError: the broker refuses a part of the seed; the text has a line for each.
        """
        with self._lifetime:
            if self._thread is not None:
                raise RuntimeError("this broker is running already")
            self._start()

    def _start(self) -> None:
        host_name, port, count = self._address
        sockets = open_sockets(host_name, tuple(port + i if port else 0 for i in range(count)), self._started)
        server: Server | None = None
        try:
            self._others = []
            if self._listeners[1:]:
                from kproto_server.broker.open_listeners import open_listeners

                self._others = open_listeners(self._listeners[1:], count, self._started)
            loop, server = self._assemble(sockets)
            if self._faults is not None:
                self._faults.begin(server)
            if self._seed is not None:
                self._seed.begin(server)
            if self._security_options is not None:
                from kproto_server.broker.security import Security, protocols_of

                hosts = [host_name, self._advertised.host, *(one.advertised.host for one in self._others)]
                self._security = Security(self._security_options, hosts, self.settings)
                self._security.apply(server, protocols_of(self._listeners))
        except BaseException:
            for sock in (*sockets, *(sock for one in self._others for sock in one.sockets)):
                sock.close()
            if self._security is not None:
                self._security.close()
                self._security = None
            if server is not None:
                server.abandon()
            raise
        node_sockets = {
            node_id: {"": sock} | {one.name: one.sockets[index] for one in self._others}
            for index, (node_id, sock) in enumerate(zip(server.state.cluster.nodes, sockets, strict=True))
        }
        thread = self._thread = BrokerThread(loop, server, node_sockets)
        try:
            thread.start()
        except KeyboardInterrupt:  # no `with` block has begun that would end the thread
            self._stop()
            raise
        if thread.problem is not None or not thread.is_running:
            self._stop()
        if thread.problem is not None:
            raise thread.problem

    def _assemble(self, sockets: list[socket.socket]) -> tuple[EventLoop, Server]:
        from kproto_server.broker.assembly import assemble

        return assemble(
            sockets,
            advertised=self._advertised,
            main_listener=self._names[0],
            others=self._others,
            kafka_version=self.kafka_version,
            settings=self.settings,
            clock_mode=self._clock_mode,
            started=self._started,
            data=self._data,
            requests_kept=self._requests_kept,
        )

    @property
    def is_running(self) -> bool:
        """Whether the broker has started, and has neither ended nor failed."""
        return self._thread is not None and self._thread.is_running

    def __repr__(self) -> str:
        name = f"Kafka {self.kafka_version.name}"
        if self._thread is None or not self._thread.is_running:
            return f"<Broker: {name}, not running>"
        if self._thread.is_current:  # which can't wait for itself
            return f"<Broker: {name}, running>"
        from kproto_server.broker.description import description

        try:
            return f"<Broker at {self.bootstrap_servers}: {name}, {self.run(description)}>"
        except RuntimeError:  # it has ended meanwhile
            return f"<Broker: {name}, not running>"

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
        thread, self._thread = self._thread, None
        try:
            thread.stop()
        finally:
            if self._security is not None:
                self._security.close()
                self._security = None

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
    def observations(self) -> Observations:
        """Return what clients have sent: `Observations.snapshot` returns it as an immutable copy."""
        return self._running_thread().running_server().observations

    @property
    def tls(self) -> BrokerTls:
        """The certificates of the listeners.

        Raises:
            RuntimeError: the broker does not run, or has no TLS.
        """
        from kproto_server.broker.tls import BrokerTls

        self._running_thread().running_server()
        if self._security is None or self._security.tls is None:
            raise RuntimeError('this broker has no TLS: give tls="auto" when you make it')
        return BrokerTls(self.run, self._security.tls)

    def servers_of(self, listener: str) -> str:
        """Return ``HOST:PORT`` of a listener of every node, comma-separated. ``listener``: its name.

        Raises:
            UsageError: there is no such listener.
        """
        index = self._listener_index(listener)
        if not index:
            return self.bootstrap_servers
        found = self.run(lambda server: [node.address(listener) for node in server.state.cluster.nodes.values()])
        return ",".join(f"{bracketed(host)}:{port}" for host, port in found)

    def _listener_index(self, name: str) -> int:
        names = [one.name for one in self._listeners]
        if name not in names:
            raise UsageError(f"no listener {name!r}: there are {', '.join(names) or 'no names'}")
        return names.index(name)

    def client_settings(
        self, client: str, *, user: str | None = None, mechanism: str | None = None, listener: str | None = None
    ) -> str:
        """Return the settings of a client library for this broker, ready to paste.

        Args:
            client: java, librdkafka, kafka-python, aiokafka, franz-go or kafkajs.
            user: the user of SASL; by default the first one.
            mechanism: the mechanism of SASL; by default the first one.
            listener: the name of a listener; by default the main one.

        Raises:
            UsageError: there is no such library, user, mechanism or listener.
        """
        if listener is None:
            return super().client_settings(client, user=user, mechanism=mechanism)
        from kproto_server.broker.security import Security, SecurityOptions

        protocol, servers = self._listeners[self._listener_index(listener)].protocol, self.servers_of(listener)
        security = self._security or Security(SecurityOptions(), [], self.settings)
        return security.client_settings(client, servers, user, mechanism, protocol, listener)

    def _call(self, action: Callable[[Server], T]) -> T:
        return self._running_thread().call(action)

    def _running_thread(self) -> BrokerThread:
        if self._thread is None:
            raise RuntimeError(NOT_RUNNING)
        return self._thread


def _listener_settings(
    given: Mapping[str, object] | Settings | None, listeners: str | Sequence[str]
) -> tuple[dict[str, str], Mapping[str, object] | Settings | None]:
    """Return the settings of listeners, and all others."""
    found = {"listeners": listeners if isinstance(listeners, str) else ",".join(listeners)} if listeners else {}
    if given is None or isinstance(given, Settings):
        return found, given
    of_listeners = {name: str(value) for name, value in given.items() if name in SETTINGS_OF_LISTENERS}
    return of_listeners | found, {name: value for name, value in given.items() if name not in SETTINGS_OF_LISTENERS}


def _users_of_listeners(
    given: Mapping[str, object] | Settings | None,
) -> tuple[dict[str, dict[str, str]], Mapping[str, object] | Settings | None]:
    """Return the users of PLAIN that listeners have for themselves, and all other settings."""
    if given is None or isinstance(given, Settings) or not any(name.endswith("sasl.jaas.config") for name in given):
        return {}, given
    from kproto_server.configuration.sasl_properties import users_of_listeners

    return users_of_listeners({name: str(value) for name, value in given.items()})


def _settings(given: Mapping[str, object] | Settings | None, kafka_version: KafkaVersion) -> Settings:
    if isinstance(given, Settings):
        return given.checked()
    return Settings.from_mapping({name: str(value) for name, value in (given or {}).items()}, kafka_version)


__all__ = ["Broker", "BrokerClock", "DataDirectory"]
