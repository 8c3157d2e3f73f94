"""Cost of a commit with many groups: the same load over 8 groups and over 60,000.

Method: as ``commit``, at 8x16 and 10 partitions, with both loads on each server. Before the measurement each group
has committed at least twice, like a consumer that has been running for a while.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import ExitStack

from bench import generator
from bench.commit import METRICS, PIPELINED, SERVER_CPU, Case, Samples, measured, of_case
from bench.model import KPROTO, Bench, Limit, Note, Row
from bench.options import add_durability, add_rounds, add_seconds, count
from bench.peers.durability import DURABILITIES, Durability
from bench.peers.fleet import Fleet, Target, best
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import BEFORE, Kproto
from bench.peers.server import Peer


class KfakeInMemory(Kfake):
    """kfake in memory only: with a data directory it did not finish 120,000 commits of 60,000 groups in 20 minutes."""

    beside: Mapping[Durability, Durability] = {"memory": "memory"}


PEERS: tuple[Peer, ...] = (Kproto(), *BEFORE, KfakeInMemory(), Kafka())
"""Without librdkafka's mock: it searches groups in a list and serves a few hundred commits per second here."""
YARDSTICK = "few-groups"
"""kproto itself with few groups."""
FEW = PIPELINED.connections
MANY = 60_000
GROWTH_MAX = 1.5
CASE = Case(10, PIPELINED)


def add_options(parser: ArgumentParser) -> None:
    add_durability(parser, DURABILITIES)
    parser.add_argument("--groups", type=count, default=MANY, metavar="N", help="60000 if not given")
    add_rounds(parser, 3)
    add_seconds(parser, 2.0)


def run(options: Namespace, note: Note) -> list[Row]:
    load = generator.program()
    groups = max(options.groups, FEW)
    flags = of_case(CASE, options.seconds)
    few: Samples = {}
    many: Samples = {}
    with ExitStack() as stack:
        fleet = Fleet(stack, note)
        fleet.start([peer for peer in PEERS if peer.name in options.only], options.durability, [CASE.partitions])
        for target, server in fleet.servers.items():
            twice = {**flags, "groups": groups, "total": 2 * groups, "verify": "false"}
            generator.run(load, server.port, f"{target}, {groups} groups", twice)
        for _, _, target, server in fleet.rounds(options.rounds, [CASE]):
            many.setdefault(target, []).append(measured(load, target, server, {**flags, "groups": groups}))
            if target.name == KPROTO and YARDSTICK in options.only:
                few.setdefault(target, []).append(measured(load, target, server, flags))
    rows = []
    for durability in options.durability:
        figures = fleet.row(durability, best(many, METRICS))
        if (kproto := Target(KPROTO, durability)) in few:
            figures[YARDSTICK] = best(few, METRICS)[kproto]
        rows.append(Row(bench=BENCH.name, case=f"{durability}, {groups:,} groups", figures=figures))
    return rows


BENCH = Bench(
    name="groups",
    summary="commit throughput with many groups, beside kproto with few, kfake and real Kafka",
    metrics=METRICS,
    peers=[KPROTO, YARDSTICK, *(peer.name for peer in PEERS[1:])],
    floors=[
        Limit(case=f"{durability}, {MANY:,} groups", metric=SERVER_CPU, at_most=GROWTH_MAX, peer=YARDSTICK)
        for durability in DURABILITIES
    ],
    add_options=add_options,
    run=run,
)
