"""Starting and stopping one server process.

A peer's ``ready()`` does everything up to the start (building, formatting a disk) and gives a `Launch`;
`started` runs it. What is measured from the start on is then the same for all: from just before the process
is made.
"""

from __future__ import annotations

import os
import re
import shutil
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
from bench.peers.durability import Durability

HOST = "127.0.0.1"
DEFAULTS: Mapping[str, str] = {}
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
    data: Path | None = None
    """The directory in which it keeps everything, if it keeps anything."""
    forget: Callable[[], None] = _nothing
    """Makes the next start the first one again; to be called while the server is down."""


class Peer(Protocol):
    """A server that can be measured."""

    @property
    def name(self) -> str: ...

    @property
    def beside(self) -> Mapping[Durability, Durability]:
        """How it is run beside a kproto of each durability; it has no place beside those that are not in here."""
        ...

    def ready(
        self,
        partitions: Sequence[int],
        durability: Durability = "memory",
        settings: Mapping[str, str] = DEFAULTS,
    ) -> AbstractContextManager[Launch]:
        """Prepare to start it.

        Args:
            partitions: sizes of the topics that a load will use; none if only its start is measured.
            durability: one of `beside`'s values.
            settings: broker settings by Kafka's names; who has none is run as it is.

        Raises:
            Missing: it cannot run here.
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
    """Make ready each peer asked for; one that is missing is left out with a note."""
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
    """A directory for one server's data, on the disk of TMPDIR; gone on leaving."""
    with tempfile.TemporaryDirectory(prefix="kproto-bench-") as made:
        yield Path(made)


def emptied(directory: Path) -> None:
    """Remove what is in a directory."""
    shutil.rmtree(directory)
    directory.mkdir()


def topic_prefix(partitions: int) -> str:
    """The name of the topic with so many partitions, but for the number that the load generator appends."""
    return f"load-{partitions}-"


class Server:
    """A server that was started; with a port told by itself, it listens already."""

    def __init__(self, launch: Launch) -> None:
        """Run it.

        Raises:
            BenchError: it ended, or said no port.
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
            self.port = launch.port or _port_told(self._process.stdout, self._log, launch)
        except BaseException:
            self.stop()
            raise

    def check(self) -> None:
        """Whether it still runs.

        Raises:
            BenchError: it does not; with its last words.
        """
        if self._process.poll() is not None:
            ended = self._process.returncode
            raise BenchError(f"{self._launch.argv[0]} ended with {ended}: {_last_line(self._log)}")

    def kill(self) -> None:
        """SIGKILL: it gets no chance to finish anything."""
        self._process.kill()
        self._close()

    def stop(self) -> None:
        """SIGTERM it and wait for its end."""
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
    """Run the server; on leaving, SIGTERM it (``killed``: SIGKILL) and wait for its end.

    Raises:
        BenchError: it ended, or said no port.
    """
    server = Server(launch)
    try:
        yield server
        server.check()
    finally:
        server.kill() if killed else server.stop()


def wait_until_listening(server: Server) -> None:
    """Wait until connections are accepted (bounded)."""
    end = monotonic() + START_SECONDS_MAX
    while True:
        try:
            socket.create_connection((HOST, server.port), 1).close()
            return
        except OSError as error:
            server.check()
            if monotonic() > end:
                raise BenchError(f"nobody listens on port {server.port}") from error
        sleep(0.02)


def processor_seconds(pid: int) -> float:
    """What a process has used of processors so far, to the hundredth."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _port_told(stdout: IO[str] | None, log: IO[str], launch: Launch) -> int:
    line = stdout.readline() if stdout else ""
    found = re.search(r":(\d+)\s*$", line)
    if not found:
        raise BenchError(f"{launch.argv[0]} told no port: {line.strip() or _last_line(log)}")
    return int(found[1])


def _last_line(log: IO[str]) -> str:
    log.seek(0)
    return next((line for line in reversed(log.read().splitlines()) if line.strip()), "it said nothing")
