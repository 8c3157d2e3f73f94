"""The server of a broker process: its nodes, the turns of their connections, reset, and the clean shutdown.

All of this runs under trio, in the thread of the `EventLoop`, which serves the connections between trio's turns.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Protocol

import trio

from kproto.errors import LogError
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.deferred import UNKNOWN
from kproto_server.network.accepting import Acceptor
from kproto_server.network.descriptors import descriptors_of_process
from kproto_server.network.event_loop import real_ms
from kproto_server.network.nodes import Nodes
from kproto_server.network.shutdown import finish, transports_of
from kproto_server.throttling.endpoints import install as install_throttling

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from kproto_server.faults.active_rules import ActiveRules
    from kproto_server.faults.rules import Rule
    from kproto_server.network.event_loop import EventLoop
    from kproto_server.network.node_listener import NodeSockets
    from kproto_server.observation.observe import Observations
    from kproto_server.observation.request_log import RequestLog
    from kproto_server.persistence.persistence import Persistence
    from kproto_server.snapshots.snapshot import BrokerSnapshot
    from kproto_server.state import BrokerState

logger = logging.getLogger("kproto")

TURNS_MS = 5.0
"""After this time in one iteration, costly operations wait for the next one."""
CHEAP_TURNS_MS = 10.0
"""After so much more, so do those of clients that have sent no costly request."""


class PeriodicTask(Protocol):
    """A task with a timer on the broker's clock."""

    def start(self) -> None:
        """Start the timer, or start it again."""
        ...


class Access(Protocol):
    """How clients reach secured nodes (`broker.security`)."""

    def client_settings(self, client: str, servers: str, user: str | None, mechanism: str | None) -> str:
        """Return the settings of a client library."""
        ...

    def variables(self, servers: str) -> dict[str, str]:
        """Return the environment variables of clients."""
        ...

    def use_certificate(self, certificate: str) -> None:
        """Give the connections from now on a certificate of another kind."""
        ...


class Server:
    """All nodes of a broker process. `EventLoop.run` runs `main`; `stop` ends it from the loop's thread."""

    def __init__(
        self,
        loop: EventLoop,
        state: BrokerState,
        observations: Observations,
        periodic_tasks: Sequence[PeriodicTask],
        persistence: Persistence | None = None,
        request_log: RequestLog | None = None,
    ) -> None:
        """``periodic_tasks``: started again by `reset`.
        ``persistence``: closed at the end of `main`; None: the broker keeps nothing on disk.
        ``request_log``: gets all requests; None: no request is logged.
        """
        self.loop = loop
        self.state = state
        self.observations = observations
        self.periodic_tasks: Sequence[PeriodicTask] = periodic_tasks
        self.dispatcher: Dispatcher = Dispatcher(state, observations, takes_turns=True)
        if state.cluster.authorizer is not None:
            from kproto_server.authorization.table import install

            install(self.dispatcher)
        install_throttling(self.dispatcher)
        self.dispatcher.monotonic_s = time.monotonic
        self.acceptor: Acceptor = Acceptor(loop, self.dispatcher, request_log)
        self.nodes: Nodes = Nodes(loop, state, self.acceptor)
        self._persistence = persistence
        self.request_log = request_log
        self.access: Access | None = None
        """None: by PLAINTEXT."""
        self.fill: Callable[[], object] = lambda: None
        """Makes the topics, records and offsets that the broker has from its start on."""
        self.snapshots: dict[int, BrokerSnapshot] = {}
        """Those that a test in another process has taken, by number."""
        self._faults: ActiveRules | None = None
        self.token: trio.lowlevel.TrioToken | None = None
        """Set when `main` runs; other threads call the server by it."""
        self._stop = trio.Event()
        self._nursery: trio.Nursery | None = None
        loop.at_iteration_end = self._end_iteration
        loop.buffer_quotas.configure(state.settings.current)
        descriptors = descriptors_of_process(has_data=persistence is not None)
        self.acceptor.descriptors_max = descriptors.all_but_files
        if persistence is not None:
            persistence.log_dir.open_segments.limit(descriptors.open_segments)
            if persistence.syncs_before_sending:
                loop.before_sending = persistence.flush

    @property
    def faults(self) -> ActiveRules:
        """The fault rules, made at their first use."""
        if self._faults is None:
            from random import Random

            from kproto_server.faults.active_rules import ActiveRules

            self._faults = ActiveRules(self.dispatcher, lambda seed: Random(seed).random)  # noqa: S311 - reproducible
        return self._faults

    @property
    def fault_rules(self) -> Sequence[Rule]:
        """The fault rules, without making `faults`."""
        return () if self._faults is None else self._faults.rules

    def _end_iteration(self) -> None:
        """Have the log write what was appended, and runnable connections proceed, until neither has anything to do.

        Costly operations have their turns here: one in each iteration, or more if they are short. Those of clients
        that have sent no costly request have more time: they mostly wait because the iteration is late, as when a
        thousand members join.
        """
        persistence, dispatcher = self._persistence, self.dispatcher
        turns_end_ms = None if dispatcher.has_free_turn else real_ms()
        while True:
            if persistence is not None:
                persistence.flush()
            if not dispatcher.runnable:
                if not dispatcher.turns:
                    break
                now_ms = real_ms()
                if turns_end_ms is None:
                    turns_end_ms = now_ms + TURNS_MS
                elif now_ms >= turns_end_ms + (CHEAP_TURNS_MS if dispatcher.next_turn_rank <= UNKNOWN else 0):
                    self.loop.iterate_again()
                    break
                dispatcher.give_turn()
            if not dispatcher.runnable:
                continue
            for connection in dispatcher.take_runnable():
                if connection.on_runnable is not None:
                    connection.on_runnable()
        if not dispatcher.has_free_turn:
            dispatcher.begin_iteration()

    def advance(self, duration_ms: float) -> None:
        """Move broker time forward. When this returns, the log has all changes that the timers have made.

        Raises:
            UsageError: as for `Clock.advance`.
        """
        persistence = self._persistence
        self.loop.clock.advance(duration_ms, None if persistence is None else persistence.drain)
        self.drain()

    def drain(self) -> None:
        """Have the log write what was appended before this returns. Blocks, if there is a data directory."""
        if self._persistence is not None:
            self._persistence.drain()

    def finish_loading(self) -> None:
        """Load at once what is left of a data directory. Blocks."""
        if self._persistence is not None:
            self._persistence.finish_loading()

    async def main(self, sockets: dict[int, NodeSockets], ready: Callable[[], object]) -> None:
        """Serve the nodes on these sockets (node id -> socket) until `stop`, then shut down cleanly.

        Owns the sockets and the persistence, and closes them. ``ready`` is called when all nodes accept connections.

        Cancellation:
            All connections are closed at once; responses that were not sent are lost. The data directory is closed as
            by `stop`.
        """
        self.nodes.take(sockets)
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self.token = trio.lowlevel.current_trio_token()
                self.nodes.open(nursery)
                nursery.start_soon(self._close_idle)
                ready()
                await self._stop.wait()
                for listener in self.nodes.listeners.values():  # no connection may wait in a nursery that is closed
                    listener.stop_listening()
                nursery.cancel_scope.cancel()
            await finish(self.nodes.listeners.values(), self.nodes.links, self.drain)
        finally:
            self.nodes.close()
            if self._persistence is not None:
                self._persistence.close()

    def abandon(self) -> None:
        """Close the data directory and the loop if `main` never runs: a part of the broker could not be made."""
        if self._persistence is not None:
            self._persistence.close()
        self.loop.close()

    def start_task(self, task: Callable[[Server], Awaitable[None]]) -> None:
        """Run a task beside the listeners until the shutdown begins; an exception in it ends the broker."""
        assert self._nursery is not None, "main runs"
        self._nursery.start_soon(task, self)

    def stop(self) -> None:
        """Begin a clean shutdown: refuse connections, respond to all requests that have arrived, end `main`."""
        self._stop.set()

    def reset(self, *, new_ports: bool = False, now_ms: int | None = None) -> None:
        """Make the broker as it was after its start: start stopped nodes, close every connection, delete topics,
        groups, offsets, producers, observations and the fault rules added since, and set the clock to the wall time.

        ``new_ports``: nodes listen on other ports afterwards, so that no client of before comes back; ``now_ms``: the
        clock's new time, before a snapshot is restored; None: the wall time.

        Raises:
            OSError: there are no free ports; nothing has happened.
            LogError: the logs in the data directory can't be removed; connections, topics and groups are gone.
        """
        self.nodes.restart(new_ports=new_ports)
        self.drain()
        self.state.reset()
        if self._persistence is not None:
            try:
                self._persistence.reset()
            except OSError as error:
                raise LogError(f"the logs can't be removed: {error}") from None
        self.observations.reset()
        if self.request_log is not None:
            self.request_log.clear()
        self.loop.clock.reset(time.time() * 1000.0 if now_ms is None else now_ms)
        if self._faults is not None:
            self._faults.reset()
        for task in self.periodic_tasks:
            task.start()
        self.nodes.begin_network()
        if now_ms is None:
            self.fill()

    async def _close_idle(self) -> None:
        """Close connections without traffic for `connections.max.idle.ms` of real time (BA-10).

        Cancellation:
            By the nursery, when the shutdown begins: nothing is left behind.
        """
        limit_ms = self.state.settings.current.int("connections.max.idle.ms")
        if limit_ms < 0:
            return
        while True:
            await trio.sleep(max(limit_ms / 1000.0 / 4, 0.05))
            self.close_idle(real_ms() - limit_ms)

    def close_idle(self, since_real_ms: float) -> None:
        """Close the connections without traffic since a real time; one whose request waits is not idle."""
        for transport in transports_of(self.nodes.listeners.values()):
            if transport.active_ms < since_real_ms and not transport.is_waiting:
                limit_ms = self.state.settings.current.int("connections.max.idle.ms")
                logger.info("%s: closed: idle for connections.max.idle.ms, %d ms", transport.client, limit_ms)
                transport.close()
