"""From the start of a server with much in its directory to all of it served.

Method: the load generator commits over the wire until the directory holds the history asked for; the server is ended
in order, or killed. Then, in turns, each is started again, and a client asks for a group of each of the 50 partitions
of the offsets topic, again and again, until none of them is still being loaded. All offsets are compared after the
first start. What is read is in the page cache for all of them.
"""

from __future__ import annotations

import json
import socket
import tempfile
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import perf_counter, sleep

from bench import generator
from bench.model import KPROTO, Bench, BenchError, Limit, Metric, Missing, Note, Row
from bench.options import count
from bench.peers.kafka import Kafka
from bench.peers.kproto import Kproto
from bench.peers.server import Launch, Peer, Server, started, topic_prefix
from bench.wire import API_VERSIONS, NOT_YET, Refused, ask, committed, connect
from bench.witness import NUMBER_SHIFT

PEERS: tuple[Peer, ...] = (Kproto(), Kafka())
"""kfake with a data directory did not come to the end of these 625,000 commits for 62,500 groups in ten minutes."""
PARTITIONS = 16
"""Of one commit: that many keys."""
OFFSETS_TOPIC_PARTITIONS = 50
KEYS, COMMITS = 1_000_000, 10_000_000
KILLED = ", then SIGKILL"
PATIENCE_SECONDS = 600.0
PAUSE_SECONDS = 0.005
"""Between two rounds of questions, so that these do not take the processor from what is measured."""
ANSWERS = Metric(key="answers_s", title="answers after s", digits=3)
AFTER_THAT = Metric(key="loading_s", title="then loading s", digits=3, compared=True)
SERVED = Metric(key="served_s", title="all served after s", digits=3, compared=True)
TIMES = (ANSWERS, AFTER_THAT, SERVED)
RESIDENT = Metric(key="rss_mb", title="resident MB", digits=0)
STORED = Metric(key="stored_mb", title="on disk MB", digits=0)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--keys", type=count, default=KEYS, metavar="N", help="1000000 if not given")
    parser.add_argument("--commits", type=count, default=COMMITS, metavar="N", help="of one key; 10000000 if not given")
    parser.add_argument("--killed", action="store_true", help="SIGKILL ends the one that wrote it; one start")
    parser.add_argument("--rounds", type=count, default=3, metavar="N", help="best of so many starts; 3 if not given")


@dataclass(frozen=True, slots=True)
class History:
    """What the directories hold."""

    groups: int
    requests: int

    @classmethod
    def asked(cls, keys: int, commits: int) -> History:
        groups = max(keys // PARTITIONS, OFFSETS_TOPIC_PARTITIONS)
        return cls(groups, max(commits // PARTITIONS, groups))

    def __str__(self) -> str:
        return f"{self.requests * PARTITIONS:,} commits of {self.groups * PARTITIONS:,} keys"

    def flags(self, state: Path) -> dict[str, object]:
        topic = topic_prefix(PARTITIONS)
        return {"groups": self.groups, "parts": PARTITIONS, "topic": topic, "state": state}


def run(options: Namespace, note: Note) -> list[Row]:
    load = generator.program()
    history = History.asked(options.keys, options.commits)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kproto-bench-")))
        filled: dict[str, Launch] = {}
        for peer in (peer for peer in PEERS if peer.name in options.only):
            try:
                launch = stack.enter_context(peer.ready([PARTITIONS], "os"))
            except Missing as missing:
                note(f"{peer.name} left out: {missing}")
                continue
            seconds = _fill(load, peer.name, launch, history, folder / peer.name, killed=options.killed)
            note(f"{peer.name} {launch.version}: filled over the wire in {seconds:.1f} s")
            filled[peer.name] = launch
        starts: dict[str, list[dict[str, float]]] = {name: [] for name in filled}
        for nth, (name, launch) in product(range(1 if options.killed else options.rounds), filled.items()):
            began = perf_counter()
            with started(launch) as server:
                starts[name].append(_timed(server, began, wanted(folder / name)) | _sizes(server, launch))
                if nth == 0:
                    verify = {**history.flags(folder / name), "mode": "verify", "create": "false"}
                    generator.run(load, server.port, f"{name} after its restart", verify)
    figures = {name: min(each, key=lambda start: start[SERVED.key]) for name, each in starts.items()}
    return [Row(bench=BENCH.name, case=f"{history}{KILLED if options.killed else ''}", figures=figures)]


def _fill(load: Path, name: str, launch: Launch, history: History, state: Path, *, killed: bool) -> float:
    """Write the history into the directory, and end the server; return the seconds that the writing took."""
    flags = {**history.flags(state), "conns": 8, "inflight": 16, "total": history.requests}
    with started(launch, killed=killed) as server:
        began = perf_counter()
        generator.run(load, server.port, f"{name}, being filled", flags)
        return perf_counter() - began


def wanted(state: Path) -> dict[str, int]:
    """A group of each partition of the offsets topic, and the offset of its first partition."""
    numbers: list[int] = json.loads(state.read_text())["acked"]
    one_of: dict[int, tuple[str, int]] = {}
    for nth, number in enumerate(numbers):
        group_id = f"load-{nth:08}"
        one_of.setdefault(java_hash(group_id) % OFFSETS_TOPIC_PARTITIONS, (group_id, number << NUMBER_SHIFT))
    return dict(one_of.values())


def java_hash(text: str) -> int:
    """Kafka's non-negative value of Java's String.hashCode(), of ASCII text."""
    value = 0
    for character in text.encode("ascii"):
        value = (value * 31 + character) & 0xFFFFFFFF
    return min(value, (1 << 32) - value) & 0x7FFFFFFF  # of the smallest there is no absolute value: it counts as 0


def _timed(server: Server, began: float, wanted: dict[str, int]) -> dict[str, float]:
    """Ask until all is served; the seconds since ``began``."""
    with _connected(server) as stream:
        ask(stream, API_VERSIONS, 0, b"")
        answers = perf_counter() - began
        missing = dict(wanted)
        while missing:
            if perf_counter() > began + PATIENCE_SECONDS:
                raise BenchError(f"after {PATIENCE_SECONDS:g} s {len(missing)} partitions are not served")
            served = [group_id for group_id in missing if _served(stream, group_id, missing[group_id])]
            for group_id in served:
                del missing[group_id]
            if missing:
                sleep(PAUSE_SECONDS)
    seconds = perf_counter() - began
    return {ANSWERS.key: answers, AFTER_THAT.key: seconds - answers, SERVED.key: seconds}


def _connected(server: Server) -> socket.socket:
    end = perf_counter() + PATIENCE_SECONDS
    while True:
        try:
            return connect(server.port)
        except OSError:
            server.check()
            if perf_counter() > end:
                raise
        sleep(PAUSE_SECONDS)


def _served(stream: socket.socket, group_id: str, wanted: int) -> bool:
    try:
        (offset,) = committed(stream, group_id, [f"{topic_prefix(PARTITIONS)}0"], 1)
    except Refused as refused:
        if refused.error_code in NOT_YET:
            return False
        raise BenchError(f"{group_id}: {refused}") from refused
    if offset != wanted:
        raise BenchError(f"{group_id}: offset {offset}, where {wanted} was committed")
    return True


def _sizes(server: Server, launch: Launch) -> dict[str, float]:
    """Megabytes: what is resident once all is loaded, and what is stored."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    (resident,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    assert launch.data is not None, "a server with a directory"
    blocks = sum(path.stat().st_blocks for path in launch.data.rglob("*") if path.is_file())
    return {RESIDENT.key: int(resident) / 1024, STORED.key: blocks * 512 / (1 << 20)}


METRICS = (*TIMES, RESIDENT, STORED)
CASE = str(History.asked(KEYS, COMMITS))
BENCH = Bench(
    name="restart",
    summary="a start with ten million commits of a million keys on disk: when is all of it served?",
    metrics=METRICS,
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=[
        Limit(case=case, metric=metric, at_most=1.0, peer=Kafka.name)
        for case, metric in product((CASE, f"{CASE}{KILLED}"), (AFTER_THAT, SERVED))
    ],
    add_options=add_options,
    run=run,
)
