"""A broker process: the listeners of its nodes, their connections, and its orderly end.

Everything here runs in the loop's thread, in trio's turns; `Host` serves the connections between them.
"""

from __future__ import annotations

import logging
import socket
from collections import Counter
from typing import TYPE_CHECKING

import trio

from kproto_server.network.event_loop import real_ms
from kproto_server.network.listening import BACKLOG, reserve
from kproto_server.network.transport import Connection
from kproto_server.requests.connection import Session
from kproto_server.requests.context import ConnectionInfo
from kproto_server.requests.dispatcher import Dispatcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.cluster.cluster import Node
    from kproto_server.configuration.settings import Settings
    from kproto_server.coordinator.expiration_task import ExpirationTask
    from kproto_server.network.event_loop import Host
    from kproto_server.observation.observe import Observations
    from kproto_server.observation.request_log import RequestLog
    from kproto_server.persistence.persistence import Persistence
    from kproto_server.state import BrokerState

logger = logging.getLogger("kproto")

ACCEPTS_A_TURN = 64
"""Connections accepted before others get a turn."""
ACCEPT_PAUSE_S = 0.1
"""How long to wait before accepting again when the process is out of file descriptors."""
DRAIN_S = 0.5
"""How long shutdown waits for clients to take their last answers; with it, exit stays within a second. In the second
half nothing further is answered, so that what has been begun has time to be sent to its end."""
DRAIN_CHECK_S = 0.005


class NodeListener:
    """One node's listening socket and the connections that came in by it."""

    def __init__(self, node: Node, sock: socket.socket) -> None:
        self.node = node
        self.socket = sock
        self.connections: set[Connection] = set()
        self.scope = trio.CancelScope()
        self._per_ip: Counter[str] = Counter()

    def admit(self, ip: str, settings: Settings) -> bool:
        """Count a new connection in, unless there are as many as may be (BA-11)."""
        if len(self.connections) >= settings.int("max.connections"):
            return False
        if self._per_ip[ip] >= settings.int("max.connections.per.ip"):
            return False
        self._per_ip[ip] += 1
        return True

    def gone(self, connection: Connection, ip: str) -> None:
        """Count a connection out."""
        self.connections.discard(connection)
        self._per_ip[ip] -= 1
        if not self._per_ip[ip]:
            del self._per_ip[ip]

    def stop_listening(self) -> None:
        """Refuse new connections from now on; those in the backlog are reset."""
        self.scope.cancel()
        if self.socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self.socket.fileno())
            self.socket.close()

    def close(self) -> None:
        """Stop listening and cut every connection, as when a broker dies."""
        self.stop_listening()
        for connection in list(self.connections):
            connection.close()


class Server:
    """All nodes of a broker process. Make it, then run `main` under the host; `stop` ends it from the loop's thread."""

    def __init__(
        self,
        host: Host,
        state: BrokerState,
        observations: Observations,
        expiration_task: ExpirationTask,
        persistence: Persistence | None = None,
        request_log: RequestLog | None = None,
    ) -> None:
        """``request_log``: where requests are kept for whoever asks; None: nowhere."""
        self.host = host
        self.state = state
        self.observations = observations
        self._expiration_task = expiration_task
        self.dispatcher = Dispatcher(state, observations)
        self._persistence = persistence
        self.request_log = request_log
        self.listeners: dict[int, NodeListener] = {}
        self._reserved: dict[int, socket.socket] = {}
        """Node id -> the bound socket of a node that is down."""
        self.token: trio.lowlevel.TrioToken | None = None
        """Set once `main` runs: the way in for other threads."""
        self._stop = trio.Event()
        self._nursery: trio.Nursery | None = None
        host.at_round_end = self._end_round
        host.burdens.take_limits(state.settings.current)
        if persistence is not None:
            host.before_sending = persistence.flush

    def _end_round(self) -> None:
        """Have the log write what the round has brought, and send the answers that have come to be."""
        persistence, dispatcher = self._persistence, self.dispatcher
        while True:
            if persistence is not None:
                persistence.flush()
            if not dispatcher.released:
                return
            for session in dispatcher.take_released():
                if session.on_released is not None:
                    session.on_released()

    def advance(self, duration_ms: float) -> None:
        """Move broker time; the log has all that this brings when it returns, so that whoever asks then sees it."""
        self.host.clock.advance(duration_ms)
        if self._persistence is not None:
            self._persistence.drain()

    async def main(self, sockets: dict[int, socket.socket], ready: Callable[[], object]) -> None:
        """Serve the nodes on these listening sockets (node id -> socket) until `stop`; then drain.

        Owns the sockets. Cancellation: connections are cut.
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
            for sock in self._reserved.values():
                sock.close()
            if self._persistence is not None:
                self._persistence.close()

    def stop(self) -> None:
        """Begin an orderly end: no new connections, answer what was read, then return from `main`."""
        self._stop.set()

    def reset(self) -> None:
        """Forget topics, groups, offsets and observations; stopped nodes come back. Connections stay open."""
        for node_id in self.state.cluster.nodes:
            self.start_node(node_id)
        if self._persistence is not None:
            self._persistence.drain()
        self.state.reset()
        if self._persistence is not None:
            self._persistence.reset()
        self.observations.reset()
        if self.request_log is not None:
            self.request_log.clear()
        self._expiration_task.start()

    def stop_node(self, node_id: int) -> None:
        """Take a broker down: its listener and connections are cut, its partitions find other leaders.

        Raises:
            KeyError: no such node, or it is down.
        """
        from kproto_server.coordinator.membership.unloading import unload  # not at the start

        self.listeners.pop(node_id).close()
        node = self.state.cluster.nodes[node_id]
        unload(self.state.coordinator, node)
        self.state.cluster.stop_node(node_id)
        self._reserved[node_id] = reserve(node.host, node.port)

    def start_node(self, node_id: int) -> None:
        """Bring a broker up on its address; nothing happens if it is.

        Raises:
            KeyError: no such node.
        """
        node = self.state.cluster.nodes[node_id]
        if node_id in self.listeners:
            return
        self._reserved[node_id].listen(BACKLOG)
        self._open(node)
        self.state.cluster.start_node(node_id)

    def _open(self, node: Node) -> None:
        assert self._nursery is not None, "main runs"
        listener = self.listeners[node.node_id] = NodeListener(node, self._reserved[node.node_id])
        del self._reserved[node.node_id]
        self._nursery.start_soon(self._accept, listener)

    async def _accept(self, listener: NodeListener) -> None:
        with listener.scope:
            await trio.lowlevel.checkpoint()  # the node may have been stopped before this had its first turn
            while True:
                await trio.lowlevel.wait_readable(listener.socket.fileno())
                try:
                    for _ in range(ACCEPTS_A_TURN):
                        self._accepted(listener, *listener.socket.accept())
                except BlockingIOError:
                    continue
                except OSError as error:
                    logger.warning("node %d can't accept: %s", listener.node.node_id, error)
                    await trio.sleep(ACCEPT_PAUSE_S)

    def _accepted(self, listener: NodeListener, sock: socket.socket, address: tuple[str, int]) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ip = address[0]
        if not listener.admit(ip, self.state.settings.of(listener.node.node_id)):
            sock.close()
            return
        info = ConnectionInfo(client_host=f"/{ip}")

        def closed(connection: Connection) -> None:
            self.observations.disconnected(info)
            listener.gone(connection, ip)

        session = self._session(listener.node, info)
        listener.connections.add(Connection(self.host, sock, session, closed))

    def _session(self, node: Node, info: ConnectionInfo) -> Session:
        if self.request_log is None:
            return Session(self.dispatcher, node, info)
        from kproto_server.requests.logged_connection import LoggedSession

        return LoggedSession(self.dispatcher, node, info, self.request_log)

    async def _close_idle(self) -> None:
        """Close connections without a request for connections.max.idle.ms of real time (BA-10)."""
        limit_ms = self.state.settings.current.int("connections.max.idle.ms")
        if limit_ms < 0:
            return
        while True:
            await trio.sleep(max(limit_ms / 1000.0 / 4, 0.05))
            oldest = real_ms() - limit_ms
            for connection in self._connections():
                if connection.active_ms < oldest and not connection.parked:
                    connection.close()

    async def _drain(self) -> None:
        """Answer what has been read; give clients a moment to take it."""
        for listener in self.listeners.values():
            listener.stop_listening()
        for connection in self._connections():
            connection.finish()
        await self._wait_delivered(DRAIN_S / 2)
        for connection in self._connections():
            connection.answer_no_more()
        await self._wait_delivered(DRAIN_S / 2)

    async def _wait_delivered(self, limit_s: float) -> None:
        with trio.move_on_after(limit_s):
            while True:
                for connection in self._connections():
                    connection.close_if_delivered()
                if not self._connections():
                    return
                await trio.sleep(DRAIN_CHECK_S)

    def _connections(self) -> list[Connection]:
        return [connection for listener in self.listeners.values() for connection in listener.connections]
