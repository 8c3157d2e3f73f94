"""Spark's daemon of Python workers, without a traceback for each worker that Spark ends.

Spark closes the socket of a worker that was idle for a minute. The worker then reports the end of its input to the
closed socket. Through TCP that report is lost; through a Unix socket it is a `BrokenPipeError`, which Spark prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import daemon

if TYPE_CHECKING:
    from socket import socket

CLOSED = 1
"""An exit code after which Spark's daemon ends the worker."""
_work = daemon.worker


def worker(sock: socket, authenticated: bool) -> int:  # as Spark calls it
    """Run one task; return its exit code."""
    try:
        return _work(sock, authenticated)
    except BrokenPipeError:
        return CLOSED


daemon.worker = worker

if __name__ == "__main__":
    daemon.manager()
