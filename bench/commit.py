"""Commit throughput and latency, for each durability, beside kfake, librdkafka's mock and real Kafka.

Method: all servers are started. In each round each case runs against each server in turn, so that other load of the
machine affects all of them. The first round is not counted, because a JVM compiles its code in it. Each figure is the
best of its rounds; builds of kproto are compared by the median of the rounds' ratios. The load generator
(``bench/load``) checks every response and at the end fetches every offset.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from bench import generator
from bench.disk import sync_time
from bench.model import KPROTO, Bench, Floor, Lead, Metric, Near, Note, Row, counted
from bench.options import add_durability, add_rounds, add_seconds, count, counts
from bench.peers.durability import DURABILITIES, ON_DISK, Durability
from bench.peers.fleet import Fleet, Target
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import BEFORE, CONTROLLED, Kproto
from bench.peers.librdkafka import Librdkafka
from bench.peers.server import Peer, Server, topic_prefix

REQUESTS = Metric(key="requests_per_s", title="requests/s", more_is_better=True, compared=True, digits=0)
SERVER_CPU = Metric(key="server_cpu_us_per_request", title="server CPU us", compared=True)
METRICS = (REQUESTS, Metric(key="p50_us", title="p50 us"), Metric(key="p99_us", title="p99 us"), SERVER_CPU)
OF_LOAD = {REQUESTS.key: "requests_s"} | {m.key: m.key for m in METRICS[1:]}
"""The load generator's name of each metric."""
PEERS: tuple[Peer, ...] = (Kproto(), CONTROLLED, *BEFORE, Kfake(), Librdkafka(), Kafka())
WARM_UP_SECONDS = 0.3
PARTITIONS = (1, 10, 100)


@dataclass(frozen=True, slots=True)
class Shape:
    """The load: connections, and pipelined requests on each."""

    connections: int
    in_flight: int

    def __str__(self) -> str:
        return f"{self.connections}x{self.in_flight}"


ONE_BY_ONE, CONNECTIONS, PIPELINED = SHAPES = (Shape(1, 1), Shape(64, 1), Shape(8, 16))


@dataclass(frozen=True, slots=True)
class Case:
    partitions: int
    shape: Shape

    def __str__(self) -> str:
        return f"{counted(self.partitions, 'partition')}, {self.shape}"


def shapes(text: str) -> list[Shape]:
    """Parse ``CONNECTIONSxIN_FLIGHT``, separated by commas."""
    found = []
    for part in text.split(","):
        connections, x, in_flight = part.partition("x")
        if not x:
            raise ArgumentTypeError(f"{part!r} is not CONNECTIONSxIN_FLIGHT, like 8x16")
        found.append(Shape(count(connections), count(in_flight)))
    return found


def add_options(parser: ArgumentParser) -> None:
    add_durability(parser, DURABILITIES)
    parser.add_argument(
        "--partitions", type=counts, default=PARTITIONS, metavar="N,...", help="per request; 1,10,100 if not given"
    )
    parser.add_argument(
        "--shapes",
        type=shapes,
        default=SHAPES,
        metavar="CxF,...",
        help="connections x pipelined requests on each; 1x1,64x1,8x16 if not given",
    )
    add_rounds(parser, 3)
    add_seconds(parser, 1.0)


def run(options: Namespace, note: Note) -> list[Row]:
    cases = [Case(*pair) for pair in product(options.partitions, options.shapes)]
    load = generator.program()
    samples: dict[Case, Samples] = {case: {} for case in cases}
    if not set(ON_DISK).isdisjoint(options.durability):
        note(sync_time())
    with ExitStack() as stack:
        fleet = Fleet(stack, note)
        fleet.start([peer for peer in PEERS if peer.name in options.only], options.durability, options.partitions)
        for nth, case, target, server in fleet.rounds(1 + options.rounds, cases):
            figures = measured(load, target, server, of_case(case, options.seconds))
            if nth > 0:
                samples[case].setdefault(target, []).append(figures)
    return [
        fleet.measured(BENCH.name, named(durability, case), durability, samples[case], METRICS)
        for durability, case in product(options.durability, cases)
    ]


Samples = dict[Target, list[dict[str, float]]]
"""The figures of each server, round by round."""


def of_case(case: Case, duration: float) -> dict[str, object]:
    """Return the load generator's flags for a case."""
    return {
        "conns": case.shape.connections,
        "inflight": case.shape.in_flight,
        "parts": case.partitions,
        "topic": topic_prefix(case.partitions),
        "duration": duration,
        "warmup": WARM_UP_SECONDS,
        "verify": "true",
    }


def measured(load: Path, target: Target, server: Server, flags: Mapping[str, object]) -> dict[str, float]:
    """Run the load generator once; return its figures."""
    what = f"{target}, {flags['parts']} partitions, {flags['conns']}x{flags['inflight']}"
    result = generator.run(load, server.port, what, {"pid": server.pid, **flags})
    return {key: float(result[theirs]) for key, theirs in OF_LOAD.items()}


def named(durability: Durability, case: Case) -> str:
    return f"{durability}, {case}"


def _floors() -> Sequence[Floor]:
    """Return the floors; with more than one pending request they are higher, since one sync serves many commits."""
    floors = [(Kafka.name, 1.0, "memory", Case(10, ONE_BY_ONE))]
    for case in (Case(*pair) for pair in product(PARTITIONS, SHAPES)):
        floors.append((Kfake.name, 1.0, "memory", case))
        if case.shape == PIPELINED:
            floors.append((Librdkafka.name, 1.0, "memory", case))
        floors.append((Kafka.name, 2.0, "os", case))
        floors.append((Kfake.name, 1.0, "os", case))
        floors.append((Kafka.name, 1.0 if case.shape == ONE_BY_ONE else 3.0, "fsync", case))
    case_of_port = named("memory", Case(10, PIPELINED))
    unused_port = Near(case=case_of_port, metric=SERVER_CPU, peer=CONTROLLED.name, at_most=1.03)
    return [unused_port] + [
        Lead(case=f"{durability}, {case}", metric=REQUESTS, peer=peer, at_least=at_least)
        for peer, at_least, durability, case in floors
    ]


BENCH = Bench(
    name="commit",
    summary="commit throughput and latency for each durability, beside kfake, librdkafka's mock and real Kafka",
    metrics=METRICS,
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=_floors(),
    add_options=add_options,
    run=run,
)
