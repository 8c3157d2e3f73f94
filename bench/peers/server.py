"""Starts and stops a server process.

A peer's ``ready()`` does everything before the start (building, formatting a disk) and gives a `Launch`; `started` runs
it. So the start of each server is measured from the same moment: just before the process is created.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Protocol

from bench.model import BenchError, Missing, Note
from bench.peers.durability import Durability

HOST = "127.0.0.1"
DEFAULTS: Mapping[str, str] = {}
START_SECONDS_MAX = 90.0
STOP_SECONDS_MAX = 30.0
CPU_CLOCK = 2
"""Linux's CPUCLOCK_SCHED: with the process id, it is the clock of the CPU time of another process."""


def _nothing() -> None:
    """Default of `Launch.forget`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The command that starts a server, and its surroundings."""

    version: str
    argv: Sequence[str]
    port: int | None = None
    """None: the server prints its port in the first line on stdout."""
    cwd: Path | None = None
    environment: Mapping[str, str] | None = None
    data: Path | None = None
    """The data directory, if any."""
    forget: Callable[[], None] = _nothing
    """Deletes the stored data, so that the next start is a first one. Call it while the server is stopped."""


class Peer(Protocol):
    """A kind of server that can be measured."""

    @property
    def name(self) -> str: ...

    @property
    def beside(self) -> Mapping[Durability, Durability]:
        """The durability that the peer runs with, by the durability of kproto that it is compared with."""
        ...

    def ready(
        self, partitions: Sequence[int], durability: Durability = "memory", settings: Mapping[str, str] = DEFAULTS
    ) -> AbstractContextManager[Launch]:
        """Prepare a start; leaving the context removes the data directory.

        Args:
            partitions: sizes of the topics that a load uses; empty if only the start is measured.
            durability: one of the values of `beside`.
            settings: broker settings by Kafka's names; a peer without such settings ignores them.

        Raises:
            Missing: the peer cannot run here.
        """
        ...


def launches(
    peers: Iterable[Peer],
    only: Sequence[str],
    note: Note,
    stack: ExitStack,
    partitions: Sequence[int] = (),
    durability: Durability = "memory",
) -> Iterator[tuple[str, Launch]]:
    """Prepare each selected peer; note each one that is missing and leave it out. The caller owns ``stack``."""
    for peer in peers:
        if peer.name not in only or durability not in peer.beside:
            continue
        try:
            launch = stack.enter_context(peer.ready(partitions, peer.beside[durability]))
        except Missing as missing:
            note(f"{peer.name} left out: {missing}")
            continue
        note(f"{peer.name} {launch.version}")
        yield peer.name, launch


@contextmanager
def data_directory() -> Iterator[Path]:
    """Give a directory for one server's data, on the disk of TMPDIR; leaving the context deletes it."""
    with tempfile.TemporaryDirectory(prefix="kproto-bench-") as made:
        yield Path(made)


def emptied(directory: Path) -> None:
    """Delete the content of a directory."""
    shutil.rmtree(directory)
    directory.mkdir()


def topic_prefix(partitions: int) -> str:
    """Return the name of a topic with this many partitions, without the number that the load generator appends."""
    return f"load-{partitions}-"


class Server:
    """A running server. If it prints its port, it listens already. `stop` or `kill` closes it."""

    def __init__(self, launch: Launch) -> None:
        """Start the process.

        Raises:
            BenchError: the process ended or printed no port.
        """
        self._launch = launch
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the server
        self._process = subprocess.Popen(
            launch.argv,
            cwd=launch.cwd,
            env=None if launch.environment is None else {**os.environ, **launch.environment},
            stdin=subprocess.DEVNULL,
            stdout=self._log if launch.port else subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.pid = self._process.pid
        try:
            self.port = launch.port or _printed_port(self._process.stdout, self._log, launch)
        except BaseException:
            self.stop()
            raise

    def check(self) -> None:
        """Check that the process is running.

        Raises:
            BenchError: the process has ended; the text has its last line of output.
        """
        if self._process.poll() is not None:
            ended = self._process.returncode
            raise BenchError(f"{self._launch.argv[0]} ended with {ended}: {_last_line(self._log)}")

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        self._process.kill()
        self._close()

    def stop(self) -> None:
        """Send SIGTERM and wait for the end."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._close()

    def _close(self) -> None:
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._log.close()


@contextmanager
def started(launch: Launch, *, killed: bool = False) -> Iterator[Server]:
    """Run the server; leaving the context stops it with SIGTERM, or with SIGKILL if ``killed``.

    Raises:
        BenchError: the process ended or printed no port.
    """
    server = Server(launch)
    try:
        yield server
        server.check()
    finally:
        server.kill() if killed else server.stop()


def wait_until_listening(server: Server) -> None:
    """Wait until the server accepts connections, at most `START_SECONDS_MAX`."""
    end = monotonic() + START_SECONDS_MAX
    while True:
        try:
            socket.create_connection((HOST, server.port), 1).close()
            return
        except OSError as error:
            server.check()
            if monotonic() > end:
                raise BenchError(f"no server listens on port {server.port}") from error
        sleep(0.02)


def processor_seconds(pid: int) -> float:
    """Return the CPU time of a process so far, of its ended threads too."""
    return time.clock_gettime(~pid << 3 | CPU_CLOCK)


def _printed_port(stdout: IO[str] | None, log: IO[str], launch: Launch) -> int:
    line = stdout.readline() if stdout else ""
    found = re.search(r":(\d+)\s*$", line)
    if not found:
        raise BenchError(f"{launch.argv[0]} printed no port: {line.strip() or _last_line(log)}")
    return int(found[1])


def _last_line(log: IO[str]) -> str:
    log.seek(0)
    return next((line for line in reversed(log.read().splitlines()) if line.strip()), "no output")
