"""The server of a broker process: the listeners of its nodes, their connections, and the clean shutdown.

All of this runs under trio, in the thread of the `EventLoop`, which serves the connections between trio's turns.
"""

from __future__ import annotations

import logging
import socket
import time
from collections import deque
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import trio

from kproto.errors import UsageError
from kproto_server.network.accepting import Acceptor
from kproto_server.network.event_loop import real_ms
from kproto_server.network.listening import BACKLOG, reserve
from kproto_server.network.node_listener import NodeBehavior, NodeListener, bound_addresses, reserve_all
from kproto_server.network.shutdown import finish, transports_of
from kproto_server.requests.deferred import TRUSTED
from kproto_server.requests.dispatcher import Dispatcher
from kproto_server.throttling.endpoints import install as install_throttling

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from kproto_server.clock import Timer
    from kproto_server.cluster.cluster import Node
    from kproto_server.faults.active_rules import ActiveRules, Rule
    from kproto_server.network.event_loop import EventLoop
    from kproto_server.network.links import Conditions, Links
    from kproto_server.network.node_listener import NodeSockets
    from kproto_server.observation.observe import Observations
    from kproto_server.observation.request_log import RequestLog
    from kproto_server.persistence.persistence import Persistence
    from kproto_server.snapshots.snapshot import BrokerSnapshot
    from kproto_server.state import BrokerState

logger = logging.getLogger("kproto")

FORMER_PORTS_MAX = 64
"""Former ports that stay reserved, each by a file descriptor."""
TURNS_MS = 5.0
"""After this time in one iteration, costly operations wait for the next one."""
CHEAP_TURNS_MS = 20.0
"""After so much more, so do those of clients whose requests were cheap."""


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


class NodeDisks(Protocol):
    """The disks of nodes (`disks`)."""

    def check_start(self, node_id: int) -> None:
        """Refuse to start a node whose disk is bad."""
        ...

    def clear(self) -> None:
        """Make all disks good."""
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
        self._persistence = persistence
        self.request_log = request_log
        self.access: Access | None = None
        """None: by PLAINTEXT."""
        self.disks: NodeDisks | None = None
        """None: all disks of nodes were always good."""
        self.fill: Callable[[], object] = lambda: None
        """Makes the topics, records and offsets that the broker has from its start on."""
        self.snapshots: dict[int, BrokerSnapshot] = {}
        """Those that a test in another process has taken, by number."""
        self.listeners: dict[int, NodeListener] = {}
        self._reserved: dict[int, NodeSockets] = {}
        """The bound sockets of stopped nodes, by node id."""
        self._crashed: dict[int, Timer] = {}
        """When the cluster notices that nodes have crashed, by node id."""
        self._former: deque[socket.socket] = deque()
        """The bound sockets of the ports that nodes had before `reset`; clients that still use them are refused."""
        self._faults: ActiveRules | None = None
        self._links: Links | None = None
        """None: the network between clients and nodes was always good."""
        self.initial_network: Sequence[tuple[int | None, Conditions]] = ()
        """Conditions of the network from the start on, by node; `reset` brings them back."""
        self.token: trio.lowlevel.TrioToken | None = None
        """Set when `main` runs; other threads call the server by it."""
        self._stop = trio.Event()
        self._nursery: trio.Nursery | None = None
        loop.at_iteration_end = self._end_iteration
        loop.buffer_quotas.configure(state.settings.current)
        if persistence is not None:
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

    def network_of(self, node_id: int) -> Conditions | None:
        """Return the conditions of the network between clients and a node; None: it is good."""
        if self._links is None:
            return None
        found = self._links.conditions(node_id)
        return found if found.shapes or found.refuse else None

    def _end_iteration(self) -> None:
        """Have the log write what was appended, and runnable connections proceed, until neither has anything to do.

        Costly operations have their turns here: one in each iteration, or more if they are short. Those of clients
        whose requests were cheap have them in any case: they only wait because the iteration is late.
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
                elif now_ms >= turns_end_ms + (CHEAP_TURNS_MS if dispatcher.next_turn_rank == TRUSTED else 0):
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

    async def main(self, sockets: dict[int, NodeSockets], ready: Callable[[], object]) -> None:
        """Serve the nodes on these sockets (node id -> socket) until `stop`, then shut down cleanly.

        Owns the sockets and the persistence, and closes them. ``ready`` is called when all nodes accept connections.

        Cancellation:
            All connections are closed at once; responses that were not sent are lost. The data directory is closed as
            by `stop`.
        """
        self._reserved.update(sockets)
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self.token = trio.lowlevel.current_trio_token()
                for node in self.state.cluster.alive_nodes():
                    self._open(node)
                self._begin_network()
                nursery.start_soon(self._close_idle)
                ready()
                await self._stop.wait()
                nursery.cancel_scope.cancel()
            await finish(self.listeners.values(), self._links)
        finally:
            for listener in self.listeners.values():
                listener.close()
            if self._links is not None:
                self._links.close()
            for sock in (*chain.from_iterable(one.values() for one in self._reserved.values()), *self._former):
                sock.close()
            if self._persistence is not None:
                self._persistence.close()

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
        """
        self.set_network(None)
        if self.disks is not None:
            self.disks.clear()
        nodes = self.state.cluster.nodes
        sockets = self._new_sockets(nodes) if new_ports else {}
        for node_id in nodes:
            self.start_node(node_id)
            self.listeners[node_id].close_connections()
            if node_id in sockets:
                self._move(node_id, sockets[node_id])
        self.drain()
        self.state.reset()
        if self._persistence is not None:
            self._persistence.reset()
        self.observations.reset()
        if self.request_log is not None:
            self.request_log.clear()
        self.loop.clock.reset(time.time() * 1000.0 if now_ms is None else now_ms)
        if self._faults is not None:
            self._faults.reset()
        for task in self.periodic_tasks:
            task.start()
        self._begin_network()
        if now_ms is None:
            self.fill()

    def _new_sockets(self, node_ids: Iterable[int]) -> dict[int, NodeSockets]:
        """Return sockets with free ports on the addresses of each node.

        Raises:
            OSError: there are too few free ports.
        """
        sockets: dict[int, NodeSockets] = {}
        try:
            for node_id in node_ids:
                listener = self.listeners.get(node_id)
                former = bound_addresses(self._reserved[node_id] if listener is None else listener.sockets)
                sockets[node_id] = reserve_all({name: (host, 0) for name, (host, _) in former.items()})
        except OSError:
            for sock in chain.from_iterable(one.values() for one in sockets.values()):
                sock.close()
            raise
        return sockets

    def _move(self, node_id: int, new: NodeSockets) -> None:
        """Have a running node listen on other sockets, and reserve its former ports, so that the kernel gives them
        to neither a listener nor a client."""
        node = self.state.cluster.nodes[node_id]
        listener = self.listeners.pop(node_id)
        former = bound_addresses(listener.sockets)
        listener.close()
        for address in former.values():
            with suppress(OSError):  # taken by another process meanwhile
                self._former.append(reserve(*address))
            if len(self._former) > FORMER_PORTS_MAX:
                self._former.popleft().close()
        for name, (_, port) in bound_addresses(new).items():
            if name:
                node.others[name] = node.others[name][0], port
            else:
                node.port = port
            new[name].listen(BACKLOG)
        self._reserved[node_id] = new
        self._open(node)
        self.state.cluster.changed()

    def stop_node(self, node_id: int) -> None:
        """Stop a node: close its listener and its connections; other nodes become the leaders of its partitions.

        Raises:
            UsageError: the node does not exist or is stopped.
        """
        self.disconnect_node(node_id)
        self._leave(node_id)

    def crash_node(self, node_id: int, *, resets: bool = True) -> None:
        """Reset a node's connections and refuse new ones; after the timeout of its session the cluster notices that,
        and other nodes become the leaders.

        ``resets``: False: its clients receive the responses that are made before their connections end.

        Raises:
            UsageError: the node does not exist or is stopped.
        """
        self.disconnect_node(node_id, resets=resets)
        self.state.cluster.silent.add(node_id)
        clock = self.loop.clock
        due_ms = clock.now_ms() + self.state.kafka_version.behavior(NodeBehavior).session_timeout_ms
        self._crashed[node_id] = clock.call_at(due_ms, partial(self._leave, node_id))

    def disconnect_node(self, node_id: int, *, resets: bool = False) -> None:
        """Close a node's listener and its connections. The cluster does not notice it: the node stays the leader.

        ``resets``: connections end by a reset (TCP RST).

        Raises:
            UsageError: the node does not exist or is stopped.
        """
        self._node(node_id)
        if node_id not in self.listeners:
            raise UsageError(f"node {node_id} is stopped already: {self._node_states()}")
        listener = self.listeners.pop(node_id)
        addresses = bound_addresses(listener.sockets)  # the node's own addresses are the advertised ones
        listener.close(resets=resets)
        self._reserved[node_id] = reserve_all(addresses)

    def _leave(self, node_id: int) -> None:
        """Have the cluster notice that a node has ended."""
        from kproto_server.coordinator.membership.unloading import unload  # not at the start

        self._crashed.pop(node_id, None)
        coordinator = self.state.coordinator
        unload(coordinator, coordinator.partitions_led_by(node_id))
        self.state.cluster.stop_node(node_id)

    def start_node(self, node_id: int) -> None:
        """Start a stopped node on its address; do nothing if it runs.

        Raises:
            UsageError: the node does not exist.
        """
        node = self._node(node_id)
        if node_id in self.listeners:
            return
        if self.disks is not None:
            self.disks.check_start(node_id)
        crashed = self._crashed.get(node_id)
        if crashed is not None:  # the cluster notices at the latest now
            crashed.cancel()
            self._leave(node_id)
        for sock in self._reserved[node_id].values():
            sock.listen(BACKLOG)
        self._open(node)
        self._update_listening(node_id)
        self.state.cluster.start_node(node_id)

    def set_network(self, node_id: int | None, conditions: Conditions | None = None) -> None:
        """Replace the conditions of the network between clients and a node; None: all nodes, or a good network.

        Raises:
            UsageError: the node does not exist.
        """
        node_ids = [*self.state.cluster.nodes] if node_id is None else [self._node(node_id).node_id]
        if self._links is None and conditions is None:
            return
        from kproto_server.network.links import GOOD, Links

        if self._links is None:
            self._links = Links(self.loop)
            self.acceptor.on_connected = self._links.connected
        for one in node_ids:
            listener = self.listeners.get(one)
            self._links.set(one, conditions or GOOD, () if listener is None else listener.transports)
            self._update_listening(one)

    def _begin_network(self) -> None:
        for node_id, conditions in self.initial_network:
            self.set_network(node_id, conditions)

    def _update_listening(self, node_id: int) -> None:
        """Have a running node refuse connections, or accept them again, as its network conditions are."""
        listener = self.listeners.get(node_id)
        refuses = self._links is not None and self._links.conditions(node_id).refuse
        if listener is None or listener.refuses == refuses:
            return
        if refuses:
            listener.refuse()
            return
        listener.listen()
        self._accept(listener)

    def _node(self, node_id: int) -> Node:
        node = self.state.cluster.nodes.get(node_id)
        if node is None:
            raise UsageError(f"node {node_id!r} does not exist: {self._node_states()}")
        return node

    def _node_states(self) -> str:
        """Return each node with its state, for errors: ``node 1 is running, node 2 is stopped``."""
        return ", ".join(
            f"node {node_id} is {'running' if node_id in self.listeners else 'stopped'}"
            for node_id in sorted(self.state.cluster.nodes)
        )

    def _open(self, node: Node) -> None:
        listener = self.listeners[node.node_id] = NodeListener(node, self._reserved[node.node_id])
        del self._reserved[node.node_id]
        self._accept(listener)

    def _accept(self, listener: NodeListener) -> None:
        assert self._nursery is not None, "main runs"
        for name in listener.sockets:
            self._nursery.start_soon(self.acceptor.accept, listener, name)

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
        for transport in transports_of(self.listeners.values()):
            if transport.active_ms < since_real_ms and not transport.is_waiting:
                limit_ms = self.state.settings.current.int("connections.max.idle.ms")
                logger.info("%s: closed: idle for connections.max.idle.ms, %d ms", transport.client, limit_ms)
                transport.close()
