"""The proxy: a listening port for each broker of a cluster, and the connections of all clients.

The first port stands for the address that the user gave. A further port is opened when a response has the address of a
broker that has none yet; it stays open when the broker is gone, because clients may know it.
"""

from __future__ import annotations

import errno
import logging
import socket
from contextlib import closing
from typing import TYPE_CHECKING

import trio

from kproto_server.configuration.settings import Settings
from kproto_server.network.accepting import ACCEPT_PAUSE_S, NO_SECURITY
from kproto_server.network.listening import CannotListen, listen, open_sockets
from kproto_server.network.tls import TlsSocket
from kproto_server.observation.observe import NO_API
from kproto_server.proxy.exchanges import Exchanges
from kproto_server.proxy.relay import Relay
from kproto_server.proxy.rewriting import PORT_MAX
from kproto_server.proxy.sockets import accept_tls
from kproto_server.proxy.upstream import CannotReach, connect, prepare, shown_address
from kproto_server.requests.context import ConnectionInfo

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from kproto_server.network.accepting import ListenerSecurity
    from kproto_server.observation.observe import Observations
    from kproto_server.proxy.faults import ProxyRules
    from kproto_server.proxy.keeping import KeptRequests
    from kproto_server.proxy.recording import RecordedConnection, Recording
    from kproto_server.proxy.rewriting import Address

logger = logging.getLogger("kproto")

BROKERS_MAX = 1000
"""Ports that are opened: a cluster that names more brokers would exhaust the file descriptors."""
CONNECTIONS_MAX = 10_000
"""Connections of clients at a time; further ones wait in the backlog of their port."""


class Proxy:
    """Keeps clients on ports of its own, and counts what they send."""

    def __init__(
        self,
        upstream: Address,
        *,
        host: str,
        port: int,
        advertised_host: str,
        observations: Observations,
        served: Mapping[int, tuple[int, int]],
        tls: ssl.SSLContext | None = None,
        recording: Recording | None = None,
        security: ListenerSecurity = NO_SECURITY,
        settings: Settings | None = None,
        rules: ProxyRules | None = None,
        kept: KeptRequests | None = None,
    ) -> None:
        """Listen for the clients of ``upstream``.

        Args:
            port: of the first listener; further brokers have the next ports. 0: a free port for each.
            advertised_host: the host that clients receive.
            served: the API versions of the cluster.
            tls: for the connections to brokers; None: they have no TLS.
            recording: captures what clients and brokers send; None: nothing does.
            security: TLS of the connections of clients.
            settings: of it; None: the defaults.
            rules: fault rules; None: there are none.
            kept: gets all requests; None: none are kept.

        Raises:
            CannotListen: the address is in use.
        """
        self._host = host
        self._advertised_host = advertised_host
        self._observations = observations
        self._served = served
        self._tls = tls
        self._recording = recording
        self._security = security
        self._settings = settings or Settings()
        self._rules = rules
        self._kept = kept
        (first,) = open_sockets(host, (port,))
        self._port = port
        """The port of the newest listener; 0: each has a free one."""
        self._sockets: dict[Address, socket.socket] = {upstream: first}
        """Listeners by the address of their broker."""
        self._unreachable: set[Address] = set()
        """Brokers of which the log says that they cannot be reached."""
        self._nursery: trio.Nursery | None = None
        self._limit = trio.CapacityLimiter(CONNECTIONS_MAX)

    @property
    def addresses(self) -> dict[Address, Address]:
        """Host and port for clients, by the address of their broker; the first one is the bootstrap address."""
        return {broker: (self._advertised_host, sock.getsockname()[1]) for broker, sock in self._sockets.items()}

    @property
    def connection_count(self) -> int:
        """The number of open connections of clients."""
        return int(self._limit.borrowed_tokens)

    async def serve(self) -> None:
        """Serve until canceled.

        Cancellation: all listeners and connections are closed.
        """
        try:
            async with trio.open_nursery() as self._nursery:
                for broker, sock in self._sockets.items():
                    self._nursery.start_soon(self._accept, broker, sock)
        finally:
            self._nursery = None
            self.close()

    def close(self) -> None:
        """Close the listeners."""
        for sock in self._sockets.values():
            sock.close()

    def address_of(self, host: str, port: int) -> Address:
        """Return the address for clients of a broker; open its port if there is none.

        Raises:
            CannotListen: no port is free, or the cluster has too many brokers.
        """
        broker = (host, port)
        sock = self._sockets.get(broker)
        if sock is None:
            sock = self._sockets[broker] = self._open(broker)
            logger.info("%s stands for the broker %s", shown_address(self.addresses[broker]), shown_address(broker))
            if self._nursery is not None:
                self._nursery.start_soon(self._accept, broker, sock)
        own_port: int = sock.getsockname()[1]
        return self._advertised_host, own_port

    def _open(self, broker: Address) -> socket.socket:
        if len(self._sockets) >= BROKERS_MAX:
            raise CannotListen(f"no port for the broker {shown_address(broker)}: there are {BROKERS_MAX} already")
        if self._port == 0:
            return open_sockets(self._host, (0,))[0]
        for port in range(self._port + 1, PORT_MAX + 1):
            try:
                sock = listen(self._host, port)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                raise CannotListen(f"no port for the broker {shown_address(broker)}: {error.strerror}") from None
            self._port = port
            return sock
        raise CannotListen(f"no port for the broker {shown_address(broker)}: all above {self._port} are in use")

    async def _accept(self, broker: Address, listener: socket.socket) -> None:
        """Accept connections for a broker, at most `CONNECTIONS_MAX` of all brokers at a time.

        Cancellation: nothing is left behind; the nursery cancels the connections, too.
        """
        assert self._nursery is not None, "the proxy serves"
        while True:
            await trio.lowlevel.wait_readable(listener)
            await self._limit.acquire_on_behalf_of(token := object())
            try:
                client, address = listener.accept()
            except BlockingIOError:
                self._limit.release_on_behalf_of(token)
            except OSError as error:
                self._limit.release_on_behalf_of(token)
                logger.warning("can't accept a connection: %s", error.strerror)
                await trio.sleep(ACCEPT_PAUSE_S)
            else:
                self._nursery.start_soon(self._serve_client, broker, client, address[:2], token)

    async def _serve_client(self, broker: Address, client: socket.socket, address: Address, token: object) -> None:
        """Relay one connection and close it; whatever ends it, the others go on.

        Cancellation: both sockets are closed; a piece may have been sent in part.
        """
        client_host = address[0]
        info = ConnectionInfo(f"/{client_host}")
        with closing(client):
            try:
                client.setblocking(False)
                prepare(client)
                with closing(self._secured(client, info)) as secured:
                    received = b""
                    if isinstance(secured, TlsSocket):  # a client whose handshake fails is none of the cluster's
                        received = await self._first_data(secured)
                        if not received:
                            return
                    with await connect(broker, self._tls) as upstream:
                        self._note_reached(broker)
                        captured = None if self._recording is None else self._recording.connection(address, upstream)
                        await self._relay(broker, secured, upstream, info, captured, received)
            except* CannotReach as group:
                if broker not in self._unreachable:
                    self._unreachable.add(broker)
                    logger.warning("%s", group.exceptions[0])
            except* CannotListen as group:
                logger.warning("%s closed: %s", client_host, group.exceptions[0])
            except* Exception:
                logger.exception("%s closed", client_host)
            finally:
                self._observations.disconnected(info)
                self._limit.release_on_behalf_of(token)

    def _secured(self, client: socket.socket, info: ConnectionInfo) -> socket.socket | TlsSocket:
        """Return the socket of a client with the TLS of the listeners, if they have it."""
        if self._security.tls_context is None:
            return client

        def failed(reason: str) -> None:
            self._observations.closed(info, "", NO_API, NO_API, reason)
            logger.info("%s closed: %s", info.client_host, reason)

        return self._security.tls_socket(self._security.tls_context(self._settings), client, info, failed)

    async def _first_data(self, secured: TlsSocket) -> bytes:
        """Return the first data behind the handshake of a client; empty: it is gone, or silent for too long.

        Cancellation: as of `accept_tls`.
        """
        with trio.move_on_after(self._settings.int("connections.max.idle.ms") / 1000):
            return await accept_tls(secured)
        return b""

    def _note_reached(self, broker: Address) -> None:
        if broker in self._unreachable:
            self._unreachable.discard(broker)
            logger.warning("%s can be reached again", shown_address(broker))

    async def _relay(
        self,
        broker: Address,
        client: socket.socket | TlsSocket,
        upstream: socket.socket,
        info: ConnectionInfo,
        captured: RecordedConnection | None,
        received: bytes,
    ) -> None:
        """Relay one connection until it ends, and log an end by the broker or by a fault rule.

        Cancellation: as of `Relay.run`; the caller closes the sockets.
        """
        exchanges = Exchanges(self._observations, info, self._served, self.address_of, self._rules, self._kept)
        relay = Relay(client, upstream, exchanges, captured, received)
        try:
            await relay.run()
        finally:
            if captured is not None:
                captured.closed(by_broker=not relay.has_client_ended)
        if relay.close_reason is not None:
            logger.info("%s %r: closed: %s", info.client_host, exchanges.client_id, relay.close_reason)
        elif not relay.has_client_ended:
            reason = exchanges.broker_closed() or "it may have ended"
            logger.info(
                "%s %r: the broker %s closed the connection: %s",
                info.client_host, exchanges.client_id, shown_address(broker), reason,
            )  # fmt: skip
