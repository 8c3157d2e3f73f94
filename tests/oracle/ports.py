"""Ports for servers that have to be told one. Needs nothing but Python, as the script `kafka` does."""

import contextlib
import random
import socket

HOST = "127.0.0.1"
PORTS = range(12_000, 32_000)
"""Below those that Linux and others give to connections."""


def free_port() -> int:
    """A port that nobody has, and none of those that connections get.

    A server takes seconds until it listens, and a connection could take its port meanwhile; and who knocks at a dead
    port of those again and again sooner or later connects a socket to itself.
    """
    while True:
        port = random.choice(PORTS)  # noqa: S311 - no secret
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind((HOST, port))
            return port
