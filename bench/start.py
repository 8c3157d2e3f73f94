"""Time from the start of a server to the response to the first commit.

Method: each start is a first one (a formatted disk, no topic), and the same small client (`bench.first_commit`) tries
from the creation of the process on. Rounds are interleaved. The reference ``import-trio`` is the whole run time of
``python -c 'import trio'`` in the same rounds. Kafka takes seconds and is started in the first two rounds only.
Each reset over HTTP follows on a commit.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from statistics import median
from time import perf_counter

from bench.first_commit import first_commit
from bench.http_reset import resetting
from bench.model import KPROTO, Bench, BenchError, Limit, Metric, Missing, Note, Row
from bench.options import add_rounds
from bench.peers import kproto, librdkafka
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import BEFORE, Kproto
from bench.peers.librdkafka import Librdkafka
from bench.peers.server import Launch, Peer, launches, started

BEST = Metric(key="best_ms", title="best ms", compared=True)
MEDIAN = Metric(key="median_ms", title="median ms")
METRICS = (BEST, MEDIAN)
PEERS: tuple[Peer, ...] = (Kproto(), *BEFORE, Kfake(), Librdkafka(), Kafka())
YARDSTICK = "import-trio"
KAFKA_ROUNDS = 2
EMBEDDED: dict[str, Callable[[], AbstractContextManager[int]]] = {
    KPROTO: kproto.running,
    Librdkafka.name: librdkafka.running,
}
"""Servers that run in this process, on a port that they give."""
Start = Callable[[], float]
"""Starts one server, commits once and stops the server; returns the seconds until the response."""
PROCESS = "process start to first commit"
IN_PROCESS = "in a running Python to first commit"
RESET = "reset over HTTP, in place of a start"


def add_options(parser: ArgumentParser) -> None:
    add_rounds(parser, 10)


def run(options: Namespace, note: Note) -> list[Row]:
    with ExitStack() as stack:
        made = list(launches(PEERS, options.only, note, stack))
        processes: dict[str, Start] = {name: partial(_process, launch) for name, launch in made}
        if YARDSTICK in options.only:
            processes[YARDSTICK] = _import_trio
        embedded = dict(_embedded(options, note))
        resets = {name: stack.enter_context(resetting(launch)) for name, launch in made if name == KPROTO}
        return [
            Row(bench=BENCH.name, case=case, figures=_timed(starts, options.rounds))
            for case, starts in ((PROCESS, processes), (IN_PROCESS, embedded), (RESET, resets))
            if starts
        ]


def _process(launch: Launch) -> float:
    """Return the seconds since just before the creation of the process."""
    began = perf_counter()
    with started(launch) as server:
        first_commit(server.port)
        seconds = perf_counter() - began
    launch.forget()
    return seconds


def _import_trio() -> float:
    began = perf_counter()
    if subprocess.run([sys.executable, "-c", "import trio"], check=False).returncode:
        raise BenchError("`python -c 'import trio'` failed")
    return perf_counter() - began


def _embedded(options: Namespace, note: Note) -> Iterator[tuple[str, Start]]:
    for name, serve in EMBEDDED.items():
        if name not in options.only:
            continue
        start = partial(_in_process, serve)
        try:
            start()  # not measured: imports and other work that happens once per process
        except Missing as missing:
            note(f"{name} in a running Python left out: {missing}")
        else:
            yield name, start


def _in_process(serve: Callable[[], AbstractContextManager[int]]) -> float:
    began = perf_counter()
    with serve() as port:
        first_commit(port)
        return perf_counter() - began


def _timed(starts: dict[str, Start], rounds: int) -> dict[str, dict[str, float]]:
    seconds: dict[str, list[float]] = {name: [] for name in starts}
    for nth in range(rounds):
        for name, start in starts.items():
            if name != Kafka.name or nth < KAFKA_ROUNDS:
                seconds[name].append(start())
    return {
        name: {"best_ms": min(each) * 1000, "median_ms": median(each) * 1000} for name, each in seconds.items() if each
    }


BENCH = Bench(
    name="start",
    summary="time from the start of a server to the response to the first commit",
    metrics=METRICS,
    peers=[KPROTO, YARDSTICK, *(peer.name for peer in PEERS[1:])],
    floors=[
        Limit(case=PROCESS, metric=BEST, at_most=2.0, peer=YARDSTICK),
        Limit(case=IN_PROCESS, metric=BEST, at_most=10.0),
        Limit(case=RESET, metric=MEDIAN, at_most=5.0),
    ],
    add_options=add_options,
    run=run,
)
