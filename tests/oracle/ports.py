"""Ports for servers that need a fixed one. Uses the standard library only, like the script `kafka`."""

import contextlib
import fcntl
import random
import socket

from tests.oracle.releases import CACHE

HOST = "127.0.0.1"
PORTS = range(12_000, 32_000)
"""Below the ephemeral ports of Linux and other systems."""
LAST = CACHE / "last-port"


def free_port() -> int:
    """Return a free port; all processes of a user take the ports in turn.

    A server listens seconds after its start, and a restarted server needs its previous port. A random port would
    occasionally belong to another server by then. An ephemeral port could be taken by a connection, and a client that
    repeatedly connects to an unused ephemeral port eventually connects a socket to itself.
    """
    LAST.parent.mkdir(parents=True, exist_ok=True)
    with LAST.open("a+") as last:
        fcntl.flock(last, fcntl.LOCK_EX)
        last.seek(0)
        port = _after(int(last.read() or random.choice(PORTS)))  # noqa: S311 - no secret
        while not _is_free(port):
            port = _after(port)
        last.truncate(0)
        last.write(str(port))
    return port


def _after(port: int) -> int:
    return PORTS[(port + 1 - PORTS.start) % len(PORTS)]


def _is_free(port: int) -> bool:
    with socket.socket() as s, contextlib.suppress(OSError):
        s.bind((HOST, port))
        return True
    return False
