"""Crash test: kills a server at random moments under load, restarts it, and compares its offsets with its clients.

Method: two loads commit for their own groups, one with many connections, one with many pipelined requests. At a random
moment the server gets SIGKILL, and the load generator writes down the commits that had a response. The server is
started again (sometimes it is killed once more while it starts), and every offset is fetched: each group must have a
commit that is not older than the last one with a response, all its partitions must have the same commit, and a commit
that was fetched once must not disappear. At the end the server has a clean shutdown and starts once more.

SIGKILL ends the process, not the machine. The simulated disk of the tests covers power loss.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from bench import generator
from bench.expected_offsets import NOTHING, CrashCounts, ExpectedOffsets, commit_number
from bench.model import KPROTO, Bench, BenchError, Limit, Metric, Missing, Note, Row
from bench.options import count, on_disk
from bench.peers.durability import ON_DISK
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import BEFORE, Kproto
from bench.peers.server import Launch, Peer, Server, wait_until_listening
from bench.wire import NOT_YET, Refused, committed, connect

PEERS: tuple[Peer, ...] = (Kproto(), *BEFORE, Kfake(), Kafka())
TOPICS = ("torture-0", "torture-1")
PARTITIONS = 3
LOAD_SECONDS_MAX = 0.5
"""Longest time from the first commit to the kill: some ten thousand commits."""
LONG_LOADS, LONG_SECONDS_MAX = 0.1, 3.0
"""Share of rounds with a longer load, for background work, and its longest time."""
ROUNDS_A_DIRECTORY = 25
"""Then the directory is emptied: without enough time for compaction each start would take longer than the last."""
KILLED_BEFORE_THE_FIRST = 0.1
BEGUN_SECONDS_MAX = 60.0
STARTS_KILLED = 0.25
START_SECONDS_MAX = 0.3
"""Longest time until a start is killed."""
SERVED_SECONDS_MAX = 60.0
NO_SUCH_GROUP = 69
"""GROUP_ID_NOT_FOUND: kfake's response where Kafka returns no offsets."""
PROGRESS_SECONDS = 5.0
SETTINGS = {
    "offsets.topic.segment.bytes": str(1 << 20),
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.1",
}
"""Small segments, compacted at once, so that kills happen while a segment is rolled or replaced."""
COUNTS = tuple(
    Metric(key=key, title=key.replace("_", " "), digits=0)
    for key in ("kills", "commits_acknowledged", "pending_when_killed", "offsets_compared", "lost", "torn", "invented")
)


@dataclass(slots=True)
class Load:
    """One load, and the offsets that its clients expect."""

    name: str
    connections: int
    in_flight: int
    groups: int
    expected: ExpectedOffsets = field(init=False)

    def __post_init__(self) -> None:
        self.expected = ExpectedOffsets(self.groups)

    def flags(self) -> dict[str, object]:
        return {
            "conns": self.connections,
            "inflight": self.in_flight,
            "groups": self.groups,
            "group": f"{self.name}-",
            "topic": TOPICS[0][:-1],
            "topics": len(TOPICS),
            "parts": PARTITIONS,
            "seq": self.expected.base,
        }


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--durability", type=on_disk, default=ON_DISK, metavar="D,...", help="os,fsync: both if not given"
    )
    parser.add_argument("--rounds", type=count, default=50, metavar="N", help="kills of each server; 50 if not given")
    parser.add_argument("--seed", type=int, help="of the random moments; printed in any case")


def run(options: Namespace, note: Note) -> list[Row]:
    load = generator.program()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed  # noqa: S311 - no secret
    note(f"--seed {seed}")
    rows = []
    for durability in options.durability:
        figures = {}
        for peer in (peer for peer in PEERS if peer.name in options.only):
            with ExitStack() as stack:
                try:
                    launch = stack.enter_context(peer.ready([PARTITIONS], durability, SETTINGS))
                except Missing as missing:
                    note(f"{peer.name} left out: {missing}")
                    continue
                torture = Torture(load, launch, random.Random(seed), f"{peer.name}, {durability}", note)  # noqa: S311
                figures[peer.name] = as_figures(torture.run(options.rounds))
        rows.append(Row(bench=BENCH.name, case=durability, figures=figures))
    return rows


def as_figures(counts: CrashCounts) -> dict[str, float]:
    numbers = (counts.kills, counts.acknowledged, counts.pending, counts.compared, *counts.faults.values())
    return {metric.key: float(number) for metric, number in zip(COUNTS, numbers, strict=True)}


class Torture:
    """All rounds of one server."""

    def __init__(self, load: Path, launch: Launch, chance: random.Random, name: str, note: Note) -> None:
        self._program = load
        self._launch = launch
        self._chance = chance
        self._name = name
        self._note = note
        self._counts = CrashCounts()
        self._loads: tuple[Load, ...] = ()

    def run(self, rounds: int) -> CrashCounts:
        """Kill the server ``rounds`` times; return the counts.

        Raises:
            BenchError: the server did not start again or sent a wrong response.
        """
        noted_at, faults = monotonic(), 0
        for nth in range(1, rounds + 1):
            if nth % ROUNDS_A_DIRECTORY == 1:
                self._begin()
            self._kill_under_load(self._start())
            if self._chance.random() < STARTS_KILLED:
                self._kill_a_start()
            if monotonic() > noted_at + PROGRESS_SECONDS or nth == rounds or self._counts.fault_count > faults:
                noted_at, faults = monotonic(), self._counts.fault_count
                self._note(f"{self._name}: round {nth} of {rounds}, {self._progress()}")
            if nth % ROUNDS_A_DIRECTORY == 0 or nth == rounds:
                self._start().stop()
                self._start().stop()
        return self._counts

    def _progress(self) -> str:
        faults = ", ".join(f"{count} {fault}" for fault, count in self._counts.faults.items())
        return (
            f"{self._counts.acknowledged:,} commits acknowledged, {self._counts.compared:,} offsets compared, {faults}"
        )

    def _begin(self) -> None:
        """Empty the directory and create the topics."""
        self._launch.forget()
        self._loads = (Load("single", connections=64, in_flight=1, groups=64), Load("piped", 8, 16, 100))
        server = Server(self._launch)
        wait_until_listening(server)
        flags = {**self._loads[0].flags(), "group": "first-", "mode": "first"}
        generator.run(self._program, server.port, self._name, flags)
        server.stop()

    def _start(self) -> Server:
        """Start the server and compare its offsets with the expected ones."""
        server = Server(self._launch)
        try:
            wait_until_listening(server)
            for load in self._loads:
                load.expected.check(_read_all(server, load), self._counts)
        except BaseException:
            server.stop()
            raise
        return server

    def _kill_a_start(self) -> None:
        server = Server(self._launch)
        sleep(self._chance.uniform(0, START_SECONDS_MAX))
        server.check()
        server.kill()
        self._counts.kills += 1

    def _kill_under_load(self, server: Server) -> None:
        with tempfile.TemporaryDirectory(prefix="kproto-torture-") as folder, ExitStack() as stack:
            states = {load.name: Path(folder) / load.name for load in self._loads}
            clients = [stack.enter_context(self._client(server, load, states[load.name])) for load in self._loads]
            try:
                if self._chance.random() > KILLED_BEFORE_THE_FIRST:
                    self._wait_until_begun(server)
                long = self._chance.random() < LONG_LOADS
                sleep(self._chance.uniform(0, LONG_SECONDS_MAX if long else LOAD_SECONDS_MAX))
                server.check()
                ended = [client for client in clients if client.poll() is not None]
            finally:
                server.kill()
            self._counts.kills += 1
            for load, client in zip(self._loads, clients, strict=True):
                output = client.communicate()[1]
                if client in ended:
                    raise BenchError(f"{self._name}: before the kill, {load.name} ended: {output.strip()}")
                load.expected.after_load(_state(states[load.name]), self._counts)

    def _wait_until_begun(self, server: Server) -> None:
        """Wait until each load's first commit is visible, at most `BEGUN_SECONDS_MAX`."""
        end = monotonic() + BEGUN_SECONDS_MAX
        for load in self._loads:
            while _number_read(server, load) <= load.expected.base:
                if monotonic() > end:
                    raise BenchError(f"{self._name}: no commit of {load.name} in {BEGUN_SECONDS_MAX:g} s")
                sleep(0.002)

    def _client(self, server: Server, load: Load, state: Path) -> subprocess.Popen[str]:
        flags = {**load.flags(), "create": "false", "warmup": 0, "duration": 600, "wait": 0, "state": state}
        argv = generator.command(self._program, server.port, flags)
        return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _state(path: Path) -> Mapping[str, Sequence[int]] | None:
    """Return what a load generator wrote down; None if nothing."""
    if not path.exists():
        return None
    state: dict[str, Any] = json.loads(path.read_text())
    return state


def _number_read(server: Server, load: Load) -> int:
    """Return the number of the stored commit of the load's first group."""
    with connect(server.port) as stream:
        found = commit_number(_read(stream, load, 0))
    return found if isinstance(found, int) else NOTHING


def _read_all(server: Server, load: Load) -> list[list[int]]:
    """Fetch all groups' offsets.

    Raises:
        BenchError: a fetch failed.
    """
    nth = 0
    found: list[list[int]] = []
    try:
        with connect(server.port) as stream:
            for nth in range(load.groups):
                found.append(_read(stream, load, nth))
    except (Refused, OSError) as error:
        server.check()
        raise BenchError(f"group {nth} of {load.name}: {error!r}") from error
    return found


def _read(stream: socket.socket, load: Load, group: int) -> list[int]:
    """Fetch a group's offsets; wait until they are loaded, at most `SERVED_SECONDS_MAX`."""
    end = monotonic() + SERVED_SECONDS_MAX
    while True:
        try:
            return committed(stream, f"{load.name}-{group:08}", TOPICS, PARTITIONS)
        except Refused as refused:
            if refused.error_code == NO_SUCH_GROUP:
                return [-1] * len(TOPICS) * PARTITIONS
            if refused.error_code not in NOT_YET or monotonic() > end:
                raise
        sleep(0.005)


BENCH = Bench(
    name="torture",
    summary="SIGKILL at random moments under load; compares all offsets after each restart",
    metrics=COUNTS,
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=[Limit(case=durability, metric=metric, at_most=0.0) for durability in ON_DISK for metric in COUNTS[-3:]],
    add_options=add_options,
    run=run,
)
