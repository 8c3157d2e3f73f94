"""What a commit costs where there are many groups: the same load, dealt out over 8 groups and over 60,000.

Method: as ``commit``, at 8x16 and 10 partitions, but each server is loaded with both. Before it is measured, each
group has committed twice at least, as a consumer that lives for a while has.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import product

from bench import generator
from bench.commit import METRICS, PIPELINED, SERVER_CPU, Case, Samples, best, measured, of_case
from bench.model import KPROTO, Bench, Limit, Note, Row
from bench.options import count, durabilities, seconds
from bench.peers.durability import DURABILITIES, Durability
from bench.peers.fleet import Fleet, Target
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import Kproto
from bench.peers.server import Peer


class KfakeInMemory(Kfake):
    """With a data directory it did not come to the end of 120,000 commits for 60,000 groups in twenty minutes."""

    beside: Mapping[Durability, Durability] = {"memory": "memory"}


PEERS: tuple[Peer, ...] = (Kproto(), KfakeInMemory(), Kafka())
"""librdkafka's mock looks a group up in a list: it answers some hundred commits a second here."""
YARDSTICK = "few-groups"
"""kproto itself under the load of few groups."""
FEW = PIPELINED.connections
MANY = 60_000
GROWTH_MAX = 1.5
CASE = Case(10, PIPELINED)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--durability",
        type=durabilities,
        default=DURABILITIES,
        metavar="D,...",
        help="memory,os,fsync: all if not given",
    )
    parser.add_argument("--groups", type=count, default=MANY, metavar="N", help="60000 if not given")
    parser.add_argument("--rounds", type=count, default=3, metavar="N", help="best of so many; 3 if not given")
    parser.add_argument("--seconds", type=seconds, default=2.0, metavar="S", help="of load each; 2 if not given")


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
        for _, (target, server) in product(range(options.rounds), fleet.servers.items()):
            many.setdefault(target, []).append(measured(load, target, server, {**flags, "groups": groups}))
            if target.name == KPROTO and YARDSTICK in options.only:
                few.setdefault(target, []).append(measured(load, target, server, flags))
    rows = []
    for durability in options.durability:
        figures = fleet.row(durability, best(many))
        if (kproto := Target(KPROTO, durability)) in few:
            figures[YARDSTICK] = best(few)[kproto]
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
