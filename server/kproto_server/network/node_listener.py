"""One node of a broker process, as the network sees it: its listening socket and its connections."""

from __future__ import annotations

import socket
from collections import Counter
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import trio

from kproto_server.configuration.settings import connection_overrides
from kproto_server.network.listening import BACKLOG, reserve
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.cluster.cluster import Node
    from kproto_server.configuration.settings import Settings
    from kproto_server.network.transport import Transport


NodeSockets = dict[str, socket.socket]
"""The sockets of a node by the name of their listener; the main one has an empty name."""


def bound_addresses(sockets: NodeSockets) -> dict[str, tuple[str, int]]:
    """Return the host and the port of each socket."""
    return {name: sock.getsockname()[:2] for name, sock in sockets.items()}


def reserve_all(addresses: Mapping[str, tuple[str, int]]) -> NodeSockets:
    """Return sockets that are bound to these addresses and do not listen; the caller closes them.

    Raises:
        OSError: as for `reserve`; none stays open.
    """
    sockets: NodeSockets = {}
    try:
        for name, address in addresses.items():
            sockets[name] = reserve(*address)
    except OSError:
        for sock in sockets.values():
            sock.close()
        raise
    return sockets


CONNECTIONS_MAX = "max.connections"


def connections_max(ip: str, settings: Settings) -> int:
    """Return how many connections an address may have."""
    overrides = settings.str("max.connections.per.ip.overrides")
    if overrides:
        from kproto.jvm.addresses import host_address

        found = {host_address(host): number for host, number in connection_overrides(overrides).items()}
        for host in (ip, "localhost" if ip == "127.0.0.1" else ip):
            if host in found:
                return found[host]
    return settings.int("max.connections.per.ip")


class NodeBehavior(VersionBehavior):
    """What Kafka releases do differently when a node ends without a word."""

    @cached_property
    def session_timeout_ms(self) -> int:
        """The time after which the cluster notices it: `broker.session.timeout.ms` in KRaft, 9 seconds; before,
        `zookeeper.session.timeout.ms`, 18 seconds from 2.5 on, 6 seconds before (KIP-537)."""
        if self.is_kraft:
            return 9_000
        return 18_000 if self.at_least(2, 5) else 6_000


class Listening(Protocol):
    """A listening socket in the event loop."""

    def end_wait(self) -> None: ...

    def close(self) -> None: ...


class NodeListener:
    """One node's listening sockets and the connections that they have accepted. Owns both; `close` closes them."""

    def __init__(self, node: Node, sockets: NodeSockets) -> None:
        self.node = node
        self.sockets: NodeSockets = sockets
        self.transports: set[Transport] = set()
        self.throttled: set[socket.socket] = set()
        """Connections above the rate of their address, which are not read and will be closed."""
        self.listening: list[Listening] = []
        """The sockets in the event loop; empty before `Acceptor.watch`."""
        self.refuses: bool = False
        """Whether new connections are refused, and the listener is open."""
        self._counts: Counter[str] = Counter()
        """Connections by IP address."""
        self._of_listeners: Counter[str] = Counter()
        """Connections by listener."""
        self.closed: trio.Event = trio.Event()
        """Set when the next connection is closed."""

    def admit(self, name: str, ip: str, settings: Settings) -> bool:
        """Count a new connection and return True, unless its address has as many as the settings allow (BA-11)."""
        if self._counts[ip] >= connections_max(ip, settings):
            return False
        self._counts[ip] += 1
        self._of_listeners[name] += 1
        return True

    def has_slot(self, name: str, own_max: int | None, settings: Settings) -> bool:
        """Return whether the node may have one more connection, and its listener (KIP-402).

        ``own_max``: of the listener with this name; None: it has no limit of its own.
        """
        if len(self.transports) >= settings.int(CONNECTIONS_MAX):
            return False
        return own_max is None or self._of_listeners[name] < own_max

    def discard(self, transport: Transport, name: str, ip: str) -> None:
        """Remove a closed connection of a listener."""
        self.transports.discard(transport)
        self._of_listeners[name] -= 1
        self._counts[ip] -= 1
        if not self._counts[ip]:
            del self._counts[ip]
        self.closed.set()
        self.closed = trio.Event()

    def stop_listening(self) -> None:
        """Refuse new connections from now on. The kernel resets those that were not accepted yet."""
        for listening in self.listening:
            listening.close()
        self.listening.clear()
        for sock in self.sockets.values():
            sock.close()

    def refuse(self) -> None:
        """Refuse new connections, and keep the address and the connections that exist.

        Raises:
            OSError: another process has taken the address meanwhile.
        """
        addresses = bound_addresses(self.sockets)
        self.stop_listening()
        self.sockets = reserve_all(addresses)
        self.refuses = True

    def listen(self) -> None:
        """Listen again after `refuse`; the caller has the connections accepted."""
        for sock in self.sockets.values():
            sock.listen(BACKLOG)
        self.refuses = False

    def close(self, *, resets: bool = False) -> None:
        """Stop listening and close every connection, as the end of the broker's process would."""
        self.stop_listening()
        self._close_throttled()
        for transport in list(self.transports):
            transport.close(resets=resets)

    def _close_throttled(self) -> None:
        for sock in self.throttled:
            sock.close()
        self.throttled.clear()

    def close_connections(self) -> None:
        """Close every connection, also those that wait to be accepted; go on listening."""
        self._close_throttled()
        for listening in self.listening:
            listening.end_wait()
        for transport in list(self.transports):
            transport.close()
        for sock in self.sockets.values():
            with suppress(OSError):  # none is left, or none can be accepted
                for _ in range(BACKLOG):
                    sock.accept()[0].close()
