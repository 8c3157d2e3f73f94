"""Commit throughput and latency in memory, beside kfake, librdkafka's mock and real Kafka.

Method: all servers are started, then in each round each case is run against each server in turn, so that what
else the machine does falls on all of them. The first round is not counted: a JVM compiles its code in it. Each
figure is the best of its rounds. The load generator (``bench/load``) checks every answer, and at the end fetches
every offset.
"""

from __future__ import annotations

import json
import subprocess
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from bench.model import KPROTO, Bench, BenchError, Lead, Metric, Missing, Note, Row
from bench.options import count, counts, seconds
from bench.peers.go import build
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import Kproto
from bench.peers.librdkafka import Librdkafka
from bench.peers.server import HOST, Peer, Server, launches, started, topic_prefix, wait_until_listening

REQUESTS = Metric(key="requests_per_s", title="requests/s", more_is_better=True, compared=True, digits=0)
SERVER_CPU = Metric(key="server_cpu_us_per_request", title="server CPU us", compared=True)
METRICS = (REQUESTS, Metric(key="p50_us", title="p50 us"), Metric(key="p99_us", title="p99 us"), SERVER_CPU)
OF_LOAD = {REQUESTS.key: "requests_s"} | {m.key: m.key for m in METRICS[1:]}
"""What the load generator calls each metric."""
PEERS: tuple[Peer, ...] = (Kproto(), Kfake(), Librdkafka(), Kafka())
WARM_UP_SECONDS = 0.3
OFFSET_COMMIT_VERSION = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """How the load comes: connections, and requests kept in flight on each."""

    connections: int
    in_flight: int

    def __str__(self) -> str:
        return f"{self.connections}x{self.in_flight}"


@dataclass(frozen=True, slots=True)
class Case:
    partitions: int
    shape: Shape

    def __str__(self) -> str:
        return f"{self.partitions} partition{'s' * (self.partitions > 1)}, {self.shape}"


def shapes(text: str) -> list[Shape]:
    """``CONNECTIONSxIN_FLIGHT``, separated by commas."""
    found = []
    for part in text.split(","):
        connections, x, in_flight = part.partition("x")
        if not x:
            raise ArgumentTypeError(f"{part!r} is not CONNECTIONSxIN_FLIGHT, like 8x16")
        found.append(Shape(count(connections), count(in_flight)))
    return found


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--partitions", type=counts, default=[10], metavar="N,...", help="a request; 10 if not given")
    parser.add_argument(
        "--shapes",
        type=shapes,
        default=[Shape(1, 1), Shape(64, 1), Shape(8, 16)],
        metavar="CxF,...",
        help="connections x requests in flight on each; 1x1,64x1,8x16 if not given",
    )
    parser.add_argument("--rounds", type=count, default=3, metavar="N", help="best of so many; 3 if not given")
    parser.add_argument("--seconds", type=seconds, default=1.0, metavar="S", help="of load each; 1 if not given")


def run(options: Namespace, note: Note) -> list[Row]:
    cases = [Case(*pair) for pair in product(options.partitions, options.shapes)]
    try:
        load = build("load")
    except Missing as missing:
        raise BenchError(f"the load generator is missing: {missing}") from missing
    samples: dict[Case, dict[str, list[dict[str, float]]]] = {case: {} for case in cases}
    with ExitStack() as stack:
        servers = {}
        for name, launch in launches(PEERS, options.only, note, stack, partitions=options.partitions):
            servers[name] = stack.enter_context(started(launch))
            wait_until_listening(servers[name])
        for nth in range(1 + options.rounds):
            for case, (name, server) in product(cases, servers.items()):
                figures = _load(load, name, server, case, options.seconds)
                if nth > 0:
                    samples[case].setdefault(name, []).append(figures)
    return [Row(bench=BENCH.name, case=str(case), figures=_best(samples[case])) for case in cases]


def _load(load: Path, name: str, server: Server, case: Case, duration: float) -> dict[str, float]:
    """One run of the load generator."""
    flags: dict[str, object] = {
        "addr": f"{HOST}:{server.port}",
        "pid": server.pid,
        "conns": case.shape.connections,
        "inflight": case.shape.in_flight,
        "parts": case.partitions,
        "topic": topic_prefix(case.partitions),
        "version": OFFSET_COMMIT_VERSION,
        "duration": duration,
        "warmup": WARM_UP_SECONDS,
        "verify": "true",
    }
    argv = [str(load), *(f"-{flag}={value}" for flag, value in flags.items())]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{name}, {case}: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}")
    said = json.loads(done.stdout)
    return {key: float(said[theirs]) for key, theirs in OF_LOAD.items()}


def _best(samples: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    return {
        name: {metric.key: metric.best([figures[metric.key] for figures in rounds]) for metric in METRICS}
        for name, rounds in samples.items()
    }


def _floors() -> Sequence[Lead]:
    one_by_one, pipelined = str(Case(10, Shape(1, 1))), str(Case(10, Shape(8, 16)))
    return [
        Lead(case=one_by_one, metric=REQUESTS, peer=Kafka.name, at_least=1.0),
        Lead(case=pipelined, metric=REQUESTS, peer=Kfake.name, at_least=1.0),
    ]


BENCH = Bench(
    name="commit",
    summary="commit throughput and latency in memory, beside kfake, librdkafka's mock and real Kafka",
    metrics=METRICS,
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=_floors(),
    add_options=add_options,
    run=run,
)
