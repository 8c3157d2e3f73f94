"""Accept the connections of nodes, and put their parts together: socket, TLS, authentication, requests."""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import trio

from kproto.errors import UsageError
from kproto_server.configuration.listeners import PLAINTEXT
from kproto_server.connection.connection import Connection
from kproto_server.network.node_listener import CONNECTIONS_MAX
from kproto_server.network.transport import Transport
from kproto_server.requests.context import ConnectionInfo

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

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
"""Connections that are accepted before other tasks and connections are served."""
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


class Acceptor:
    """Accepts the connections of all nodes of a broker process."""

    def __init__(self, loop: EventLoop, dispatcher: Dispatcher, request_log: RequestLog | None) -> None:
        """``request_log``: gets all requests; None: no request is logged."""
        self._loop = loop
        self._dispatcher = dispatcher
        self._request_log = request_log
        self.security: dict[str, ListenerSecurity] = {}
        """By the name of the listener, empty for the main one; a listener that is missing has neither TLS nor SASL."""
        self.main_listener: str = PLAINTEXT
        """The name of the main listener in settings of listeners."""
        self.on_connected: Callable[[int, Transport], object] | None = None
        """Called with the node id of each new connection."""
        self.descriptors_max: int = sys.maxsize
        """While the process has so many descriptors, connections wait to be accepted."""
        self._newest_descriptor = 0
        """That of the connection that was accepted last."""

    async def accept(self, listener: NodeListener, name: str) -> None:
        """Accept the connections of a node's listener until it is closed. ``name``: of the listener.

        Cancellation:
            By the listener's scope, or the nursery: nothing is left behind, accepted connections stay open.
        """
        with listener.scopes[name]:
            await trio.lowlevel.checkpoint()  # the node may have been stopped before this task first ran
            while True:
                sock = listener.sockets[name]
                await trio.lowlevel.wait_readable(sock.fileno())
                try:
                    for _ in range(ACCEPTS_A_TURN):
                        self._check_descriptors(sock)
                        accepted, address = sock.accept()
                        self._newest_descriptor = accepted.fileno()
                        if self._settings(listener).limits_connection_rates or not self._has_slot(listener, name):
                            await self._wait_for_slot(listener, name, accepted)
                        self._connect(listener, name, accepted, address)
                except BlockingIOError:
                    continue
                except OSError as error:
                    logger.warning("node %d can't accept: %s", listener.node.node_id, error)
                    await trio.sleep(ACCEPT_PAUSE_S)

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

    def _has_slot(self, listener: NodeListener, name: str) -> bool:
        settings = self._settings(listener)
        own_max = settings.int_of_listener(name or self.main_listener, CONNECTIONS_MAX)
        return listener.has_slot(name, own_max, settings)

    @cached_property
    def _rates(self) -> ConnectionRates:
        """Made at its first use: few brokers limit the rates of connections."""
        from kproto_server.throttling.connections import ConnectionRates

        state = self._dispatcher.state
        return ConnectionRates(state.cluster, state.settings, state.clock)

    async def _wait_for_slot(self, listener: NodeListener, name: str, sock: socket.socket) -> None:
        """Wait as long as the rates of the node and of its listener demand, and until they may have a connection more.

        Cancellation:
            The socket is closed.
        """
        clock, is_over = self._dispatcher.state.clock, trio.Event()
        throttle_ms = self._rates.listener_ms(listener.node.node_id, name or self.main_listener)
        timer = clock.call_at(clock.now_ms() + throttle_ms, is_over.set, for_client=True)
        try:
            if throttle_ms:
                logger.info("a connection is not accepted for %d ms: max.connection.creation.rate", throttle_ms)
                await is_over.wait()
            while not self._has_slot(listener, name):
                with trio.move_on_after(ACCEPT_PAUSE_S):  # the limit may have been raised meanwhile
                    await listener.closed.wait()
        except BaseException:
            sock.close()
            raise
        finally:
            timer.cancel()

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
        security = self.security.get(name, NO_SECURITY)
        settings = self._dispatcher.state.settings.of(listener.node.node_id)
        try:
            context = None if security.tls_context is None else security.tls_context(settings)
        except UsageError as error:  # the settings were altered
            logger.warning("/%s: closed: %s", ip, error)
            sock.close()
            return
        if self._dispatcher.state.cluster.client_quotas:
            throttle_ms = self._rates.address_ms(listener.node.node_id, name or self.main_listener, ip)
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
