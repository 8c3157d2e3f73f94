"""Starting and stopping one server process.

A peer's ``ready()`` does everything up to the start (building, formatting a disk) and gives a `Launch`;
`started` runs it. What is measured from the start on is then the same for all: from just before the process
is made.
"""

from __future__ import annotations

import os
import random
import re
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Protocol

from bench.model import BenchError, Missing, Note

HOST = "127.0.0.1"
START_SECONDS_MAX = 90.0
STOP_SECONDS_MAX = 30.0


def _nothing() -> None:
    """What most servers need between two starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a server is started."""

    version: str
    argv: Sequence[str]
    port: int | None = None
    """None where the server's first line on stdout tells it."""
    cwd: Path | None = None
    environment: Mapping[str, str] | None = None
    forget: Callable[[], None] = _nothing
    """Makes the next start the first one again; to be called while the server is down."""


class Peer(Protocol):
    """A server that can be measured."""

    @property
    def name(self) -> str: ...

    def ready(self, partitions: Sequence[int]) -> AbstractContextManager[Launch]:
        """Prepare to start it.

        Args:
            partitions: sizes of the topics that a load will use; none if only its start is measured.

        Raises:
            Missing: it cannot run here.
        """
        ...


def launches(
    peers: Iterable[Peer], only: Sequence[str], note: Note, stack: ExitStack, partitions: Sequence[int] = ()
) -> Iterator[tuple[str, Launch]]:
    """Make ready each peer asked for; one that is missing is left out with a note."""
    for peer in peers:
        if peer.name not in only:
            continue
        try:
            launch = stack.enter_context(peer.ready(partitions))
        except Missing as missing:
            note(f"{peer.name} left out: {missing}")
            continue
        note(f"{peer.name} {launch.version}")
        yield peer.name, launch


def topic_prefix(partitions: int) -> str:
    """The name of the topic with so many partitions, but for the number that the load generator appends."""
    return f"load-{partitions}-"


def free_port() -> int:
    """A port of which nobody makes outgoing connections.

    Knocking at a dead port of the ephemeral range again and again sooner or later connects a socket to
    itself.
    """
    while True:
        port = random.randrange(20000, 30000)  # noqa: S311 - no secret
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        return port


@dataclass(frozen=True, slots=True)
class Server:
    """A server that was started; with a port told by itself, it listens already."""

    port: int
    pid: int


@contextmanager
def started(launch: Launch) -> Iterator[Server]:
    """Run the server; on leaving, SIGTERM it and wait for its end.

    Raises:
        BenchError: it ended, or said no port.
    """
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            launch.argv,
            cwd=launch.cwd,
            env=None if launch.environment is None else {**os.environ, **launch.environment},
            stdin=subprocess.DEVNULL,
            stdout=log if launch.port else subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            port = launch.port or _port_told(process.stdout, log, launch)
            yield Server(port, process.pid)
            if process.poll() is not None:
                raise BenchError(f"{launch.argv[0]} ended with {process.returncode}: {_last_line(log)}")
        finally:
            _stop(process)


def wait_until_listening(server: Server) -> None:
    """Wait until connections are accepted (bounded)."""
    end = monotonic() + START_SECONDS_MAX
    while True:
        try:
            socket.create_connection((HOST, server.port), 1).close()
            return
        except OSError as error:
            if monotonic() > end:
                raise BenchError(f"nobody listens on port {server.port}") from error
        sleep(0.02)


def _port_told(stdout: IO[str] | None, log: IO[str], launch: Launch) -> int:
    line = stdout.readline() if stdout else ""
    found = re.search(r":(\d+)\s*$", line)
    if not found:
        raise BenchError(f"{launch.argv[0]} told no port: {line.strip() or _last_line(log)}")
    return int(found[1])


def _last_line(log: IO[str]) -> str:
    log.seek(0)
    return next((line for line in reversed(log.read().splitlines()) if line.strip()), "it said nothing")


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()
