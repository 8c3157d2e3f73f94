"""Listening sockets: made before anything heavy is imported, so that clients can connect from then on (D14)."""

from __future__ import annotations

import socket

BACKLOG = 1024
"""Connections that may wait for accept; Kafka's default of 50 makes a burst of clients retry their SYN."""


def reserve(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address that nobody can connect to yet; port 0 is a free one.

    A stopped broker keeps its address this way: clients are refused, and nobody else takes it.

    Raises:
        OSError: the address is in use or not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that clients can connect to from now on; port 0 is a free one.

    Raises:
        OSError: the address is in use or not ours.
    """
    sock = reserve(host, port)
    try:
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock
