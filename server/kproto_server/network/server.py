"""The server of a broker process: the listeners of its nodes, their connections, and the clean shutdown.

All of this runs under trio, in the thread of the `EventLoop`, which serves the connections between trio's turns.
"""

from __future__ import annotations

import logging
import socket
import time
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import trio

from kproto.errors import UsageError
from kproto_server.network.event_loop import real_ms
from kproto_server.network.listening import BACKLOG, reserve
from kproto_server.network.transport import Transport
from kproto_server.requests.connection import Connection
from kproto_server.requests.context import ConnectionInfo
from kproto_server.requests.deferred import TRUSTED
from kproto_server.requests.dispatcher import Dispatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kproto_server.cluster.cluster import Node
    from kproto_server.configuration.settings import Settings
    from kproto_server.network.event_loop import EventLoop
    from kproto_server.observation.observe import Observations
    from kproto_server.observation.request_log import RequestLog
    from kproto_server.persistence.persistence import Persistence
    from kproto_server.state import BrokerState

logger = logging.getLogger("kproto")

ACCEPTS_A_TURN = 64
"""Connections that are accepted before other tasks and connections are served."""
FORMER_PORTS_MAX = 64
"""Former ports that stay reserved, each by a file descriptor."""
ACCEPT_PAUSE_S = 0.1
"""Pause when a connection cannot be accepted, mostly because the process has no file descriptors left."""
RESPOND_S = 0.25
"""How long a shutdown handles requests that have arrived, at most, and sends their responses."""
DELIVER_S = 0.25
"""How long it then waits, at most, until clients have taken the responses that were made: none ends in its middle. The
process ends within a second."""
DRAIN_CHECK_S = 0.005
TURNS_MS = 5.0
"""After this time in one iteration, costly operations wait for the next one."""
CHEAP_TURNS_MS = 20.0
"""After so much more, so do those of clients whose requests were cheap."""


class PeriodicTask(Protocol):
    """A task with a timer on the broker's clock."""

    def start(self) -> None:
        """Start the timer, or start it again."""
        ...


class NodeListener:
    """One node's listening socket and the connections that it has accepted. Owns both; `close` closes them."""

    def __init__(self, node: Node, sock: socket.socket) -> None:
        self.node = node
        self.socket = sock
        self.transports: set[Transport] = set()
        self.scope: trio.CancelScope = trio.CancelScope()
        """Has the task that accepts connections."""
        self._counts: Counter[str] = Counter()
        """Connections by IP address."""

    def admit(self, ip: str, settings: Settings) -> bool:
        """Count a new connection and return True, unless there are as many as the settings allow (BA-11)."""
        if len(self.transports) >= settings.int("max.connections"):
            return False
        if self._counts[ip] >= settings.int("max.connections.per.ip"):
            return False
        self._counts[ip] += 1
        return True

    def discard(self, transport: Transport, ip: str) -> None:
        """Remove a closed connection."""
        self.transports.discard(transport)
        self._counts[ip] -= 1
        if not self._counts[ip]:
            del self._counts[ip]

    def stop_listening(self) -> None:
        """Refuse new connections from now on. The kernel resets those that were not accepted yet."""
        self.scope.cancel()
        if self.socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self.socket.fileno())
            self.socket.close()

    def close(self) -> None:
        """Stop listening and close every connection, as a crash of the broker would."""
        self.stop_listening()
        for transport in list(self.transports):
            transport.close()

    def close_connections(self) -> None:
        """Close every connection, also those that wait to be accepted; go on listening."""
        for transport in list(self.transports):
            transport.close()
        with suppress(OSError):  # none is left, or none can be accepted
            for _ in range(BACKLOG):
                self.socket.accept()[0].close()


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
        self._periodic_tasks = periodic_tasks
        self.dispatcher: Dispatcher = Dispatcher(state, observations, takes_turns=True)
        self.dispatcher.monotonic_s = time.monotonic
        self._persistence = persistence
        self.request_log = request_log
        self.listeners: dict[int, NodeListener] = {}
        self._reserved: dict[int, socket.socket] = {}
        """The bound sockets of stopped nodes, by node id."""
        self._former: deque[socket.socket] = deque()
        """The bound sockets of the ports that nodes had before `reset`; clients that still use them are refused."""
        self.token: trio.lowlevel.TrioToken | None = None
        """Set when `main` runs; other threads call the server by it."""
        self._stop = trio.Event()
        self._nursery: trio.Nursery | None = None
        loop.at_iteration_end = self._end_iteration
        loop.buffer_quotas.configure(state.settings.current)
        if persistence is not None:
            loop.before_sending = persistence.flush

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
        if persistence is not None:
            persistence.drain()

    async def main(self, sockets: dict[int, socket.socket], ready: Callable[[], object]) -> None:
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
                nursery.start_soon(self._close_idle)
                ready()
                await self._stop.wait()
                nursery.cancel_scope.cancel()
            await self._drain()
        finally:
            for listener in self.listeners.values():
                listener.close()
            for sock in (*self._reserved.values(), *self._former):
                sock.close()
            if self._persistence is not None:
                self._persistence.close()

    def stop(self) -> None:
        """Begin a clean shutdown: refuse connections, respond to all requests that have arrived, end `main`."""
        self._stop.set()

    def reset(self, *, new_ports: bool = False) -> None:
        """Make the broker as it was after its start: start stopped nodes, close every connection, delete topics,
        groups, offsets, producers and observations, and set the clock to the wall time.

        ``new_ports``: nodes listen on other ports afterwards, so that no client of before comes back.

        Raises:
            OSError: there are no free ports; nothing has happened.
        """
        nodes = self.state.cluster.nodes
        sockets = self._new_sockets(nodes.values()) if new_ports else {}
        for node_id in nodes:
            self.start_node(node_id)
            self.listeners[node_id].close_connections()
            if node_id in sockets:
                self._move(node_id, sockets[node_id])
        if self._persistence is not None:
            self._persistence.drain()
        self.state.reset()
        if self._persistence is not None:
            self._persistence.reset()
        self.observations.reset()
        if self.request_log is not None:
            self.request_log.clear()
        self.loop.clock.reset(time.time() * 1000.0)
        for task in self._periodic_tasks:
            task.start()

    def _new_sockets(self, nodes: Iterable[Node]) -> dict[int, socket.socket]:
        """Return a socket with a free port on the address of each node.

        Raises:
            OSError: there are too few free ports.
        """
        sockets: dict[int, socket.socket] = {}
        try:
            for node in nodes:
                sockets[node.node_id] = reserve(node.host, 0)
        except OSError:
            for sock in sockets.values():
                sock.close()
            raise
        return sockets

    def _move(self, node_id: int, new: socket.socket) -> None:
        """Have a running node listen on another socket, and reserve its former port, so that the kernel gives it to
        neither a listener nor a client."""
        node = self.state.cluster.nodes[node_id]
        listener = self.listeners.pop(node_id)
        host, port = listener.socket.getsockname()[:2]
        listener.close()
        with suppress(OSError):  # taken by another process meanwhile
            self._former.append(reserve(host, port))
        if len(self._former) > FORMER_PORTS_MAX:
            self._former.popleft().close()
        node.port = new.getsockname()[1]
        new.listen(BACKLOG)
        self._reserved[node_id] = new
        self._open(node)
        self.state.cluster.changed()

    def stop_node(self, node_id: int) -> None:
        """Stop a node: close its listener and its connections; other nodes become the leaders of its partitions.

        Raises:
            UsageError: the node does not exist or is stopped.
        """
        from kproto_server.coordinator.membership.unloading import unload  # not at the start

        node = self._node(node_id)
        if node_id not in self.listeners:
            raise UsageError(f"node {node_id} is stopped already: {self._node_states()}")
        listener = self.listeners.pop(node_id)
        host, port = listener.socket.getsockname()[:2]  # the node's own address is the advertised one
        listener.close()
        unload(self.state.coordinator, node)
        self.state.cluster.stop_node(node_id)
        self._reserved[node_id] = reserve(host, port)

    def start_node(self, node_id: int) -> None:
        """Start a stopped node on its address; do nothing if it runs.

        Raises:
            UsageError: the node does not exist.
        """
        node = self._node(node_id)
        if node_id in self.listeners:
            return
        self._reserved[node_id].listen(BACKLOG)
        self._open(node)
        self.state.cluster.start_node(node_id)

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
        assert self._nursery is not None, "main runs"
        listener = self.listeners[node.node_id] = NodeListener(node, self._reserved[node.node_id])
        del self._reserved[node.node_id]
        self._nursery.start_soon(self._accept, listener)

    async def _accept(self, listener: NodeListener) -> None:
        """Accept connections until the listener is closed.

        Cancellation:
            By the listener's scope, or the nursery: nothing is left behind, accepted connections stay open.
        """
        with listener.scope:
            await trio.lowlevel.checkpoint()  # the node may have been stopped before this task first ran
            while True:
                await trio.lowlevel.wait_readable(listener.socket.fileno())
                try:
                    for _ in range(ACCEPTS_A_TURN):
                        self._connect(listener, *listener.socket.accept())
                except BlockingIOError:
                    continue
                except OSError as error:
                    logger.warning("node %d can't accept: %s", listener.node.node_id, error)
                    await trio.sleep(ACCEPT_PAUSE_S)

    def _connect(self, listener: NodeListener, sock: socket.socket, address: tuple[str, int]) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ip = address[0]
        if not listener.admit(ip, self.state.settings.of(listener.node.node_id)):
            logger.info("/%s: closed: max.connections or max.connections.per.ip is reached", ip)
            sock.close()
            return
        info = ConnectionInfo(client_host=f"/{ip}")

        def closed(transport: Transport) -> None:
            self.observations.disconnected(info)
            listener.discard(transport, ip)

        connection = self._connection(listener.node, info)
        listener.transports.add(Transport(self.loop, sock, connection, closed))

    def _connection(self, node: Node, info: ConnectionInfo) -> Connection:
        if self.request_log is None:
            return Connection(self.dispatcher, node, info)
        from kproto_server.requests.logged_connection import LoggedConnection

        return LoggedConnection(self.dispatcher, node, info, self.request_log)

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
        for transport in self._transports():
            if transport.active_ms < since_real_ms and not transport.is_waiting:
                limit_ms = self.state.settings.current.int("connections.max.idle.ms")
                logger.info("%s: closed: idle for connections.max.idle.ms, %d ms", transport.client, limit_ms)
                transport.close()

    async def _drain(self) -> None:
        """Respond to the requests that have arrived, then wait until clients have the responses; both within limits.

        Cancellation:
            `main` closes the connections; responses that were not sent are lost.
        """
        for listener in self.listeners.values():
            listener.stop_listening()
        for transport in self._transports():
            transport.finish()
        await self._wait_delivered(RESPOND_S)
        for transport in self._transports():
            transport.drop_backlog()
        await self._wait_delivered(DELIVER_S)

    async def _wait_delivered(self, limit_s: float) -> None:
        """Close each connection whose client has all responses, until none is left or the time is over.

        Cancellation:
            The connections that are left stay open.
        """
        with trio.move_on_after(limit_s):
            while True:
                for transport in self._transports():
                    transport.close_if_delivered()
                if not self._transports():
                    return
                await trio.sleep(DRAIN_CHECK_S)

    def _transports(self) -> list[Transport]:
        return [transport for listener in self.listeners.values() for transport in listener.transports]
