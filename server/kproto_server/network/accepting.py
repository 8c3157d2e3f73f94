"""Accept the connections of nodes, and put their parts together: socket, TLS, authentication, requests.

Theory of operation. Listening sockets are in the event loop, as those of clients are: a task of trio would take 0.2 ms
longer for a connection, because trio waits for sockets in a thread of its own. A task runs only while a connection has
to wait before it is accepted; the socket is not watched meanwhile.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import trio

from kproto.errors import UsageError
from kproto_server.connection.connection import Connection
from kproto_server.network.node_listener import CONNECTIONS_MAX
from kproto_server.network.poller import READ
from kproto_server.network.transport import NOTHING, Transport
from kproto_server.requests.context import ConnectionInfo

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from kproto_server.cluster.cluster import Node
    from kproto_server.configuration.settings import Settings
    from kproto_server.connection.dispatcher import Dispatcher
    from kproto_server.network.event_loop import EventLoop
    from kproto_server.network.node_listener import NodeListener
    from kproto_server.network.tls import TlsSocket
    from kproto_server.network.transport import ClientSocket
    from kproto_server.observation.request_log import RequestLog
    from kproto_server.security.refusals import TlsParameters
    from kproto_server.security.sasl import Authentication
    from kproto_server.throttling.connections import ConnectionRates

logger = logging.getLogger("kproto")

ACCEPTS_A_TURN = 64
"""Connections that are accepted in one iteration of the loop."""
ACCEPT_PAUSE_S = 0.1
"""Pause when a connection cannot be accepted, mostly because the process has no file descriptors left."""


class ListenerSecurity(NamedTuple):
    """What the connections of a listener have."""

    tls_context: Callable[[Settings], ssl.SSLContext] | None = None
    """Returns the TLS context of a new connection by the settings of its node; None: no TLS."""
    tls_parameters: Callable[[str, str, bytes | None], TlsParameters] | None = None
    """Returns what a report says of a handshake: version, cipher and the client's certificate; None: no TLS."""
    principal_of_certificate: Callable[[bytes], str] | None = None
    """Returns the principal of a client with a certificate; None: the principal does not depend on certificates."""
    new_authentication: Callable[[], Authentication] | None = None
    """Returns what a new connection has to authenticate by SASL; None: nothing."""

    def tls_socket(
        self, context: ssl.SSLContext, sock: ClientSocket, info: ConnectionInfo, on_failure: Callable[[str], object]
    ) -> TlsSocket:
        """Return a client's socket with TLS; its handshake is noted in ``info``.

        ``on_failure``: called with the reason when the client does something that TLS does not allow.
        """
        from kproto_server.network.tls import TlsSocket

        return TlsSocket(context, sock, on_failure, _on_handshake(info, self))


NO_SECURITY = ListenerSecurity()


class ListeningSocket:
    """A listening socket in the event loop. It belongs to the node's listener, which closes it behind `close`."""

    __slots__ = ("_accept", "_is_closed", "_loop", "_nursery", "_scope", "_socket")

    def __init__(
        self,
        loop: EventLoop,
        nursery: trio.Nursery,
        sock: socket.socket,
        accept: Callable[[], Callable[[], Awaitable[object]] | None],
    ) -> None:
        """``accept``: accepts connections that wait. It returns what to wait for before the next call, or None."""
        self._loop = loop
        self._nursery = nursery
        self._socket = sock
        self._accept = accept
        self._scope = trio.CancelScope()
        """Of the task that waits before more is accepted, or of the last one."""
        self._is_closed = False
        loop.add(sock.fileno(), self, READ)

    def on_ready(self, _mask: int, _now_ms: int) -> None:
        wait = self._accept()
        if wait is not None:
            self._scope = trio.CancelScope()
            self._loop.poller.modify(self._socket.fileno(), NOTHING)
            self._nursery.start_soon(self._go_on_after, wait)

    async def _go_on_after(self, wait: Callable[[], Awaitable[object]]) -> None:
        """Watch the socket again after a wait.

        Cancellation:
            By `end_wait`: the socket is watched again. By `close`, or by the nursery: it is not watched any more.
        """
        with self._scope:
            await wait()
        if not self._is_closed:  # that may come between the end of the wait and the turn of this task
            self._loop.poller.modify(self._socket.fileno(), READ)

    def end_wait(self) -> None:
        """Close the connection that waits before it is accepted, if there is one, and go on with the next."""
        self._scope.cancel()

    def close(self) -> None:
        """Accept no more connections."""
        self._is_closed = True
        self._scope.cancel()
        self._loop.remove(self._socket.fileno())


class Acceptor:
    """Accepts the connections of all nodes of a broker process."""

    def __init__(self, loop: EventLoop, dispatcher: Dispatcher, request_log: RequestLog | None) -> None:
        """``request_log``: gets all requests; None: no request is logged."""
        self._loop = loop
        self._dispatcher = dispatcher
        self._request_log = request_log
        self.security: dict[str, ListenerSecurity] = {}
        """By the name of the listener, empty for the main one; a listener that is missing has neither TLS nor SASL."""
        self.on_connected: Callable[[int, Transport], object] | None = None
        """Called with the node id of each new connection."""
        self.descriptors_max: int = sys.maxsize
        """While the process has so many descriptors, connections wait to be accepted."""
        self._newest_descriptor = 0
        """That of the connection that was accepted last."""

    def _accept(self, listener: NodeListener, name: str) -> Callable[[], Awaitable[object]] | None:
        """Accept connections that wait at a node's listener with this name.

        Return what to wait for before more can be accepted; None: nothing.
        """
        sock = listener.sockets[name]
        try:
            for _ in range(ACCEPTS_A_TURN):
                self._check_descriptors(sock)
                accepted, address = sock.accept()
                self._newest_descriptor = accepted.fileno()
                if self._settings(listener).limits_connection_rates or not self._has_slot(listener, name):
                    return partial(self._connect_later, listener, name, accepted, address)
                self._connect(listener, name, accepted, address)
        except BlockingIOError:
            return None
        except OSError as error:
            logger.warning("node %d can't accept: %s", listener.node.node_id, error)
            return partial(trio.sleep, ACCEPT_PAUSE_S)
        return None

    def watch(self, listener: NodeListener, nursery: trio.Nursery) -> None:
        """Accept a node's connections from now on, until it stops listening."""
        for name, sock in listener.sockets.items():
            accept = partial(self._accept, listener, name)
            listener.listening.append(ListeningSocket(self._loop, nursery, sock, accept))

    def _check_descriptors(self, sock: socket.socket) -> None:
        """Raise the error of a process without descriptors if those that are left are for files."""
        # A new descriptor is the lowest that is free. While that of the latest connection is low, one more may come.
        if self._newest_descriptor >= self.descriptors_max - 1:
            lowest = os.dup(sock.fileno())
            os.close(lowest)
            if lowest >= self.descriptors_max:
                raise OSError(errno.EMFILE, "Too many open connections: the descriptors that are left are for files")

    def _settings(self, listener: NodeListener) -> Settings:
        return self._dispatcher.state.settings.of(listener.node.node_id)

    def _named(self, listener: str) -> str:
        """Return the name of a listener in settings; empty: of the main one."""
        return listener or self._dispatcher.state.cluster.main_listener

    def _has_slot(self, listener: NodeListener, name: str) -> bool:
        settings = self._settings(listener)
        own_max = settings.int_of_listener(self._named(name), CONNECTIONS_MAX)
        return listener.has_slot(name, own_max, settings)

    @cached_property
    def _rates(self) -> ConnectionRates:
        """Made at its first use: few brokers limit the rates of connections."""
        from kproto_server.throttling.connections import ConnectionRates

        state = self._dispatcher.state
        return ConnectionRates(state.cluster, state.settings, state.clock)

    async def _connect_later(
        self, listener: NodeListener, name: str, sock: socket.socket, address: tuple[str, int]
    ) -> None:
        """Wait as long as the rates of the node and of its listener demand, and until they may have a connection more.

        Cancellation:
            The socket is closed.
        """
        clock, is_over = self._dispatcher.state.clock, trio.Event()
        throttle_ms = self._rates.listener_ms(listener.node.node_id, self._named(name))
        timer = clock.call_at(clock.now_ms() + throttle_ms, is_over.set, for_client=True)
        try:
            await trio.lowlevel.checkpoint()  # the listener may have been closed before this task first ran
            if throttle_ms:
                logger.info("a connection is not accepted for %d ms: max.connection.creation.rate", throttle_ms)
                await is_over.wait()
            while not self._has_slot(listener, name):
                with trio.move_on_after(ACCEPT_PAUSE_S):  # the limit may have been raised meanwhile
                    await listener.closed.wait()
            await trio.lowlevel.checkpoint_if_cancelled()  # the listener may have been closed since the wait ended
        except BaseException:
            sock.close()
            raise
        finally:
            timer.cancel()
        try:
            self._connect(listener, name, sock, address)
        except OSError as error:
            logger.warning("node %d can't accept: %s", listener.node.node_id, error)
            sock.close()

    def _close_later(self, listener: NodeListener, sock: socket.socket, ip: str, throttle_ms: int) -> None:
        """Close a connection that is not let in behind its throttle time."""
        logger.info("/%s: closed in %d ms: connection_creation_rate is exceeded", ip, throttle_ms)
        clock = self._dispatcher.state.clock
        listener.throttled.add(sock)

        def close() -> None:
            listener.throttled.discard(sock)
            sock.close()

        clock.call_at(clock.now_ms() + throttle_ms, close, for_client=True)

    def _connect(self, listener: NodeListener, name: str, sock: socket.socket, address: tuple[str, int]) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ip = address[0]
        if ":" in ip:
            from kproto.jvm.addresses import host_address

            ip = host_address(ip)
        security = self.security.get(name, NO_SECURITY)
        settings = self._dispatcher.state.settings.of(listener.node.node_id)
        try:
            context = None if security.tls_context is None else security.tls_context(settings)
        except UsageError as error:  # the settings were altered
            logger.warning("/%s: closed: %s", ip, error)
            sock.close()
            return
        if self._dispatcher.state.cluster.client_quotas:
            throttle_ms = self._rates.address_ms(listener.node.node_id, self._named(name), ip)
            if throttle_ms:
                self._close_later(listener, sock, ip, throttle_ms)
                return
        if not listener.admit(name, ip, settings):
            logger.info("/%s: closed: max.connections.per.ip is reached", ip)
            sock.close()
            return
        info = ConnectionInfo(client_host=f"/{ip}", listener=name, client_port=address[1])

        def closed(transport: Transport) -> None:
            self._dispatcher.observations.disconnected(info)
            listener.discard(transport, name, ip)

        connection = self._connection(listener.node, info, security)
        idle_max_ms = settings.int("connections.max.idle.ms")
        if context is not None:
            from kproto_server.network.tls import TlsTransport

            tls = security.tls_socket(context, sock, info, connection.give_up)
            transport: Transport = TlsTransport(self._loop, tls, connection, closed, idle_max_ms)
        elif security.new_authentication is not None:
            from kproto_server.network.half_open import HalfOpenTransport

            transport = HalfOpenTransport(self._loop, sock, connection, closed, idle_max_ms)
        else:
            transport = Transport(self._loop, sock, connection, closed)
        listener.transports.add(transport)
        if self.on_connected is not None:
            self.on_connected(listener.node.node_id, transport)

    def _connection(self, node: Node, info: ConnectionInfo, security: ListenerSecurity) -> Connection:
        if security.new_authentication is not None:
            from kproto_server.connection.authenticating_connection import connect

            return connect(self._dispatcher, node, info, self._request_log, security.new_authentication())
        if self._request_log is None:
            return Connection(self._dispatcher, node, info)
        from kproto_server.connection.logged_connection import LoggedConnection

        return LoggedConnection(self._dispatcher, node, info, self._request_log)


def _on_handshake(
    info: ConnectionInfo, security: ListenerSecurity
) -> Callable[[str, str, bytes | None], object] | None:
    parameters, principal_of = security.tls_parameters, security.principal_of_certificate
    assert parameters is not None, "the listener has TLS"

    def note(version: str, cipher: str, certificate: bytes | None) -> None:
        if principal_of is not None and certificate is not None:
            info.principal = principal_of(certificate)
        info.tls = parameters(version, cipher, certificate)

    return note
