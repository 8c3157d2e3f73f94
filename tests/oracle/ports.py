"""Ports for servers that have to be told one. Needs nothing but Python, as the script `kafka` does."""

import contextlib
import fcntl
import random
import socket

from tests.oracle.releases import CACHE

HOST = "127.0.0.1"
PORTS = range(12_000, 32_000)
"""Below those that Linux and others give to connections."""
LAST = CACHE / "last-port"


def free_port() -> int:
    """A port that nobody has, and that nobody was given here for long: all processes of a user take them in turn.

    A server takes seconds until it listens, and one that is started again wants the port that it had. So a port drawn
    by lot was now and then another server's by then; and one of those that connections get could be taken by one, and
    who knocks at a dead one of those again and again sooner or later connects a socket to itself.
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
