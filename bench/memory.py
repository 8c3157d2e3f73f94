"""What committed offsets cost in memory: each of these servers as a whole process, filled over the wire.

Method: a fresh server commits for one group, and its memory is read; then each group commits once, and it is read
again. What it has grown by, divided by the entries, is the figure; and once more after each group has committed twice
again, for what a server remembers of consumers that live. A JVM takes memory in advance and gives none back: for Kafka
the live heap is counted as well, as `jcmd GC.class_histogram` tells it after a full collection.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import generator
from bench.model import KPROTO, Bench, BenchError, Limit, Metric, Missing, Note, Row
from bench.options import count
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import Kproto
from bench.peers.server import Launch, Peer, Server, started, wait_until_listening

PEERS: tuple[Peer, ...] = (Kproto(), Kfake(), Kafka())
RESIDENT = Metric(key="resident_bytes_per_entry", title="bytes/entry", compared=True)
LIVELY = Metric(key="lively_bytes_per_entry", title="after 3 commits", compared=True)
LIVE = Metric(key="live_bytes_per_entry", title="live heap")
FILL = Metric(key="fill_s", title="filled in s", digits=2)
METRICS = (RESIDENT, LIVELY, LIVE, FILL)
BYTES_MAX = 64.0


@dataclass(frozen=True, slots=True)
class Shape:
    """Groups, and of each the topics and their partitions."""

    groups: int
    topics: int
    partitions: int

    @property
    def entries(self) -> int:
        return self.groups * self.topics * self.partitions

    def __str__(self) -> str:
        return f"{self.groups:,} groups x {self.topics} topics x {self.partitions} partitions"

    def flags(self) -> dict[str, object]:
        return {"groups": self.groups, "topics": self.topics, "parts": self.partitions}


SHAPES = (Shape(1_000, 10, 100), Shape(62_500, 1, 16))
LARGE_SHAPES = (Shape(1_000_000, 1, 16), Shape(4_000_000, 1, 1))
"""Kafka is not filled with these: its heap would have to be as large as the machine."""


def shapes(text: str) -> list[Shape]:
    """``GROUPSxTOPICSxPARTITIONS``, separated by commas."""
    found = []
    for part in text.split(","):
        numbers = part.split("x")
        if len(numbers) != 3:
            raise ArgumentTypeError(f"{part!r} is not GROUPSxTOPICSxPARTITIONS, like 1000x10x100")
        found.append(Shape(*map(count, numbers)))
    return found


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--shapes", type=shapes, default=SHAPES, metavar="GxTxP,...", help="1000x10x100,62500x1x16 if not given"
    )
    parser.add_argument("--large", action="store_true", help="a million groups and more as well: minutes, gigabytes")


def run(options: Namespace, note: Note) -> list[Row]:
    load = generator.program()
    asked: list[Shape] = [*options.shapes, *(LARGE_SHAPES if options.large else ())]
    figures: dict[Shape, dict[str, dict[str, float]]] = {shape: {} for shape in asked}
    for peer in (peer for peer in PEERS if peer.name in options.only):
        try:
            live = _live_heap() if peer.name == Kafka.name else None
            with peer.ready([1], peer.beside["memory"]) as launch:
                note(f"{peer.name} {launch.version}")
                for shape in asked:
                    if peer.name != Kafka.name or shape not in LARGE_SHAPES:
                        figures[shape][peer.name] = _filled(load, launch, peer.name, shape, live)
                        launch.forget()
        except Missing as missing:
            note(f"{peer.name} left out: {missing}")
    return [Row(bench=BENCH.name, case=str(shape), figures=figures[shape]) for shape in asked]


def _filled(load: Path, launch: Launch, name: str, shape: Shape, live: Callable[[int], int] | None) -> dict[str, float]:
    """Start a server and fill it; what each entry costs."""
    with started(launch) as server:
        wait_until_listening(server)
        generator.run(load, server.port, name, {**shape.flags(), "groups": 1, "group": "first-", "total": 100})
        resident, live_before = _resident(server), live(server.pid) if live else 0
        filling = {**shape.flags(), "conns": 8, "inflight": 16, "total": shape.groups}
        said = generator.run(load, server.port, name, filling)
        grown = {RESIDENT.key: (_resident(server) - resident) / shape.entries, FILL.key: float(said["seconds"])}
        if live:
            grown[LIVE.key] = (live(server.pid) - live_before) / shape.entries
        generator.run(load, server.port, name, {**filling, "total": 2 * shape.groups, "seq": 1})
        grown[LIVELY.key] = (_resident(server) - resident) / shape.entries
    return grown


def _resident(server: Server) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def _live_heap() -> Callable[[int], int]:
    """What tells the bytes of all objects alive in a JVM.

    Raises:
        Missing: no JDK's `jcmd` here.
    """
    home = os.environ.get("JAVA_HOME")
    jcmd = shutil.which("jcmd", path=f"{home}/bin" if home else None)
    if jcmd is None:
        raise Missing("no `jcmd` (of a JDK), which tells the live heap")

    def live(pid: int) -> int:
        argv = [jcmd, str(pid), "GC.class_histogram"]
        said = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
        total = [line.split() for line in said.splitlines() if line.startswith("Total")]
        if len(total) != 1:
            raise BenchError(f"jcmd told no histogram of process {pid}")
        return int(total[0][2])

    return live


BENCH = Bench(
    name="memory",
    summary="memory for each committed offset, beside kfake and real Kafka",
    metrics=METRICS,
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=[
        Limit(case=str(shape), metric=metric, at_most=BYTES_MAX)
        for shape in (*SHAPES, *LARGE_SHAPES)
        for metric in (RESIDENT, LIVELY)
    ],
    add_options=add_options,
    run=run,
)
