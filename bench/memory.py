"""Memory of committed offsets: the growth of a whole server process that is filled over the wire.

Method: one group commits to a fresh server, and the process's memory is read. Then each group commits once, and the
memory is read again: the growth divided by the number of entries is the figure. It is read once more after each group
has committed twice again, for what a server keeps for consumers that go on. A JVM takes memory in advance and returns
none, so for Kafka the live heap is measured too, with `jcmd GC.class_histogram` after a full collection.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from pathlib import Path

from bench import generator
from bench.group_shape import GroupShape
from bench.model import KPROTO, Bench, BenchError, Limit, Metric, Missing, Note, Row
from bench.options import count
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import BEFORE, Kproto
from bench.peers.server import Launch, Peer, started, wait_until_listening
from bench.process_tree import resident_bytes

PEERS: tuple[Peer, ...] = (Kproto(), *BEFORE, Kfake(), Kafka())
RESIDENT = Metric(key="resident_bytes_per_entry", title="bytes/entry", compared=True)
LIVELY = Metric(key="lively_bytes_per_entry", title="after 3 commits", compared=True)
LIVE = Metric(key="live_bytes_per_entry", title="live heap")
FILL = Metric(key="fill_s", title="filled in s", digits=2)
METRICS = (RESIDENT, LIVELY, LIVE, FILL)
BYTES_MAX = 64.0


SHAPES = (GroupShape(1_000, 10, 100), GroupShape(62_500, 1, 16))
LARGE_SHAPES = (GroupShape(1_000_000, 1, 16), GroupShape(4_000_000, 1, 1))
"""Not for Kafka, whose heap would have to be as large as the machine."""


def shapes(text: str) -> list[GroupShape]:
    """Parse ``GROUPSxTOPICSxPARTITIONS``, separated by commas."""
    found = []
    for part in text.split(","):
        numbers = part.split("x")
        if len(numbers) != 3:
            raise ArgumentTypeError(f"{part!r} is not GROUPSxTOPICSxPARTITIONS, like 1000x10x100")
        found.append(GroupShape(*map(count, numbers)))
    return found


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--shapes", type=shapes, default=SHAPES, metavar="GxTxP,...", help="1000x10x100,62500x1x16 if not given"
    )
    parser.add_argument("--large", action="store_true", help="also a million groups and more: minutes, gigabytes")


def run(options: Namespace, note: Note) -> list[Row]:
    load = generator.program()
    selected: list[GroupShape] = [*options.shapes, *(LARGE_SHAPES if options.large else ())]
    figures: dict[GroupShape, dict[str, dict[str, float]]] = {shape: {} for shape in selected}
    for peer in (peer for peer in PEERS if peer.name in options.only):
        try:
            live = _live_heap() if peer.name == Kafka.name else None
            with peer.ready([1], peer.beside["memory"]) as launch:
                note(f"{peer.name} {launch.version}")
                for shape in selected:
                    if peer.name != Kafka.name or shape not in LARGE_SHAPES:
                        figures[shape][peer.name] = _filled(load, launch, peer.name, shape, live)
                        launch.forget()
        except Missing as missing:
            note(f"{peer.name} left out: {missing}")
    return [Row(bench=BENCH.name, case=str(shape), figures=figures[shape]) for shape in selected]


def _filled(
    load: Path, launch: Launch, name: str, shape: GroupShape, live: Callable[[int], int] | None
) -> dict[str, float]:
    """Start a server and fill it; return the bytes per entry."""
    sizes: dict[str, object] = {"groups": shape.groups, "topics": shape.topics, "parts": shape.partitions}
    with started(launch) as server:
        wait_until_listening(server)
        generator.run(load, server.port, name, {**sizes, "groups": 1, "group": "first-", "total": 100})
        resident, live_before = resident_bytes(server.pid), live(server.pid) if live else 0
        filling = {**sizes, "conns": 8, "inflight": 16, "total": shape.groups}
        result = generator.run(load, server.port, name, filling)
        grown = {
            RESIDENT.key: (resident_bytes(server.pid) - resident) / shape.entries,
            FILL.key: float(result["seconds"]),
        }
        if live:
            grown[LIVE.key] = (live(server.pid) - live_before) / shape.entries
        generator.run(load, server.port, name, {**filling, "total": 2 * shape.groups, "seq": 1})
        grown[LIVELY.key] = (resident_bytes(server.pid) - resident) / shape.entries
    return grown


def _live_heap() -> Callable[[int], int]:
    """Return a function that returns the bytes of all live objects in a JVM.

    Raises:
        Missing: there is no `jcmd` of a JDK.
    """
    home = os.environ.get("JAVA_HOME")
    jcmd = shutil.which("jcmd", path=f"{home}/bin" if home else None)
    if jcmd is None:
        raise Missing("no `jcmd` (of a JDK) to measure the live heap")

    def live(pid: int) -> int:
        argv = [jcmd, str(pid), "GC.class_histogram"]
        output = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
        total = [line.split() for line in output.splitlines() if line.startswith("Total")]
        if len(total) != 1:
            raise BenchError(f"jcmd printed no histogram of process {pid}")
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
