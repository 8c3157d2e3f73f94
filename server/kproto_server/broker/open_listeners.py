"""The sockets of the listeners beside the main one, and their addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.configuration.listeners import ALL_ADDRESSES, Address
from kproto_server.network.listening import open_sockets

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Sequence

    from kproto_server.configuration.listeners import Listener


class OpenListener(NamedTuple):
    """A listener of every node, with its sockets in the order of node ids."""

    name: str
    protocol: str
    advertised: Address
    """Of the first node; port 0: the bound one."""
    sockets: Sequence[socket.socket]


def ports_from(first: int, count: int) -> tuple[int, ...]:
    """Return a port for each node: consecutive ones, or 0 for free ones."""
    return tuple(first + number if first else 0 for number in range(count))


def open_listeners(listeners: Iterable[Listener], count: int, started: int | None = None) -> list[OpenListener]:
    """Return listeners with a socket for each of ``count`` nodes; the first ``started`` listen. The caller closes them.

    Raises:
        CannotListen: an address is in use; no socket stays open.
    """
    opened: list[OpenListener] = []
    try:
        for one in listeners:
            host, port = one.bound or Address("127.0.0.1", 0)
            sockets = open_sockets(host or "0.0.0.0", ports_from(port, count), started)  # noqa: S104
            advertised = one.advertised or Address(reachable_name(host), 0)
            opened.append(OpenListener(one.name, one.protocol, advertised, sockets))
    except BaseException:
        close_listeners(opened)
        raise
    return opened


def close_listeners(listeners: Iterable[OpenListener]) -> None:
    """Close the sockets of listeners."""
    for one in listeners:
        for sock in one.sockets:
            sock.close()


def reachable_name(host: str) -> str:
    """Return a host that clients can connect to: this machine's name for one that means all its addresses."""
    if host not in ALL_ADDRESSES:
        return host
    import socket

    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:  # a name that this machine can't resolve is of less use than the address
        return host or "0.0.0.0"  # noqa: S104
    return name
