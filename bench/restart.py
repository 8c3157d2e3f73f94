"""Time from the start of a server with a large directory until it serves all of it.

Method: the load generator commits over the wire until the directory has the requested history. The server is stopped
with a clean shutdown, or killed. Then the servers are started in turn, and a client fetches one group of each of the
50 partitions of the offsets topic, again and again, until all of them are loaded. After the first start all offsets are
compared. All files are in the page cache.
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
from bench.expected_offsets import NUMBER_SHIFT
from bench.model import KPROTO, Bench, BenchError, Limit, Metric, Note, Row
from bench.options import add_rounds, count
from bench.peers.kafka import Kafka
from bench.peers.kproto import BEFORE, Kproto
from bench.peers.server import Launch, Peer, Server, launches, started, topic_prefix
from bench.process_tree import resident_bytes
from bench.wire import API_VERSIONS, NOT_YET, Refused, ask, committed, connect
from kproto.records.partitioning import partition_for

PEERS: tuple[Peer, ...] = (Kproto(), *BEFORE, Kafka())
"""Without kfake: with a data directory it did not finish these 625,000 commits of 62,500 groups in ten minutes."""
PARTITIONS = 16
"""Partitions of one commit, each of them a key."""
OFFSETS_TOPIC_PARTITIONS = 50
KEYS, COMMITS = 1_000_000, 10_000_000
KILLED = ", then SIGKILL"
PATIENCE_SECONDS = 600.0
PAUSE_SECONDS = 0.005
"""Pause between two fetches of all groups, so that the client leaves the processor to the server."""
FIRST_RESPONSE = Metric(key="first_response_s", title="first response after s", digits=3)
LOADING = Metric(key="loading_s", title="then loading s", digits=3, compared=True)
SERVED = Metric(key="served_s", title="all served after s", digits=3, compared=True)
TIMES = (FIRST_RESPONSE, LOADING, SERVED)
RESIDENT = Metric(key="rss_mb", title="resident MB", digits=0)
STORED = Metric(key="stored_mb", title="on disk MB", digits=0)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--keys", type=count, default=KEYS, metavar="N", help="1000000 if not given")
    parser.add_argument(
        "--commits", type=count, default=COMMITS, metavar="N", help="of single keys; 10000000 if not given"
    )
    parser.add_argument("--killed", action="store_true", help="end the writing server with SIGKILL; measure one start")
    add_rounds(parser, 3, "starts")


@dataclass(frozen=True, slots=True)
class History:
    """The content of the directories."""

    groups: int
    requests: int

    @classmethod
    def of(cls, keys: int, commits: int) -> History:
        groups = max(keys // PARTITIONS, OFFSETS_TOPIC_PARTITIONS)
        return cls(groups, max(commits // PARTITIONS, groups))

    def __str__(self) -> str:
        return f"{self.requests * PARTITIONS:,} commits of {self.groups * PARTITIONS:,} keys"

    def flags(self, state: Path) -> dict[str, object]:
        topic = topic_prefix(PARTITIONS)
        return {"groups": self.groups, "parts": PARTITIONS, "topic": topic, "state": state}


def run(options: Namespace, note: Note) -> list[Row]:
    load = generator.program()
    history = History.of(options.keys, options.commits)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kproto-bench-")))
        filled: dict[str, Launch] = {}
        for name, launch in launches(PEERS, options.only, note, stack, [PARTITIONS], "os"):
            seconds = _fill(load, name, launch, history, folder / name, killed=options.killed)
            note(f"{name} was filled over the wire in {seconds:.1f} s")
            filled[name] = launch
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
    """Write the history into the directory and end the server; return the seconds of writing."""
    flags = {**history.flags(state), "conns": 8, "inflight": 16, "total": history.requests}
    with started(launch, killed=killed) as server:
        began = perf_counter()
        generator.run(load, server.port, f"{name}, while filling", flags)
        return perf_counter() - began


def wanted(state: Path) -> dict[str, int]:
    """Return one group per partition of the offsets topic, with the offset of its first partition."""
    numbers: list[int] = json.loads(state.read_text())["acked"]
    one_of: dict[int, tuple[str, int]] = {}
    for nth, number in enumerate(numbers):
        group_id = f"load-{nth:08}"
        one_of.setdefault(partition_for(group_id, OFFSETS_TOPIC_PARTITIONS), (group_id, number << NUMBER_SHIFT))
    return dict(one_of.values())


def _timed(server: Server, began: float, wanted: dict[str, int]) -> dict[str, float]:
    """Fetch until all partitions are served; return the seconds since ``began``."""
    with _connected(server) as stream:
        ask(stream, API_VERSIONS, 0, b"")
        first = perf_counter() - began
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
    return {FIRST_RESPONSE.key: first, LOADING.key: seconds - first, SERVED.key: seconds}


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
    """Return the resident memory after loading and the stored bytes, in megabytes."""
    assert launch.data is not None, "a server with a directory"
    blocks = sum(path.stat().st_blocks for path in launch.data.rglob("*") if path.is_file())
    return {RESIDENT.key: resident_bytes(server.pid) / (1 << 20), STORED.key: blocks * 512 / (1 << 20)}


METRICS = (*TIMES, RESIDENT, STORED)
CASE = str(History.of(KEYS, COMMITS))
BENCH = Bench(
    name="restart",
    summary="time from a start until ten million commits of a million keys on disk are served",
    metrics=METRICS,
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=[
        Limit(case=case, metric=metric, at_most=1.0, peer=Kafka.name)
        for case, metric in product((CASE, f"{CASE}{KILLED}"), (LOADING, SERVED))
    ],
    add_options=add_options,
    run=run,
)
