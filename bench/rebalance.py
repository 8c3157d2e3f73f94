"""Time until all members of a group have their assignment, beside kfake and real Kafka.

Method: the load generator plays all members, each on its own open connection. All members join at once, then one more
joins, then that one leaves. Real clients learn of a rebalance with their next heartbeat, every three seconds; these
members send a heartbeat as soon as a rebalance has begun, so that the coordinator alone is measured. All servers are
started and measured in turn. The first round is not counted, and each figure is the best of its rounds.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from itertools import product

from bench import generator
from bench.model import KPROTO, Bench, Lead, Metric, Note, Row
from bench.options import add_durability, add_rounds, counts
from bench.peers.durability import Durability
from bench.peers.fleet import Fleet, Target, best
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import BEFORE, Kproto
from bench.peers.server import Peer

TIME = Metric(key="ms", title="ms", compared=True)
SERVER_CPU = Metric(key="server_cpu_ms", title="server CPU ms", digits=0)
METRICS = (TIME, SERVER_CPU)
PEERS: tuple[Peer, ...] = (Kproto(), *BEFORE, Kfake(), Kafka())
"""All run without an initial rebalance delay."""
MEMBERS = (1, 10, 100, 1000)
EVENTS = {"start": "all join", "join": "one more joins", "leave": "one leaves"}
"""The load generator's name of each event, and its title."""
DURABILITIES: tuple[Durability, ...] = ("memory", "os")
FLOOR_MEMBERS = 100


def add_options(parser: ArgumentParser) -> None:
    add_durability(parser, DURABILITIES)
    parser.add_argument("--members", type=counts, default=MEMBERS, metavar="N,...", help="1,10,100,1000 if not given")
    add_rounds(parser, 5)


def run(options: Namespace, note: Note) -> list[Row]:
    load = generator.program()
    samples: dict[tuple[int, str], dict[Target, list[dict[str, float]]]] = {
        case: {} for case in product(options.members, EVENTS)
    }
    with ExitStack() as stack:
        fleet = Fleet(stack, note)
        fleet.start([peer for peer in PEERS if peer.name in options.only], options.durability, [1])
        for nth, size in product(range(1 + options.rounds), options.members):
            for target, server in fleet.servers.items():
                flags = {"mode": "rebalance", "conns": size, "group": f"rebalance-{size}-{nth}-", "pid": server.pid}
                result = generator.run(load, server.port, f"{target}, {size} members", flags)
                for event in EVENTS if nth > 0 else ():
                    figures = {TIME.key: float(result[f"{event}_ms"]), SERVER_CPU.key: float(result[f"{event}_cpu_ms"])}
                    samples[size, event].setdefault(target, []).append(figures)
    return [
        Row(
            bench=BENCH.name,
            case=named(durability, size, event),
            figures=fleet.row(durability, best(samples[size, event], METRICS)),
        )
        for durability, size, event in product(options.durability, options.members, EVENTS)
    ]


def named(durability: Durability, members: int, event: str) -> str:
    return f"{durability}, {members:,} member{'s' * (members > 1)}: {EVENTS[event]}"


BENCH = Bench(
    name="rebalance",
    summary="time until all members of a group have their assignment, beside kfake and real Kafka",
    metrics=METRICS,
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=[
        Lead(case=named(durability, FLOOR_MEMBERS, event), metric=TIME, peer=Kafka.name, at_least=1.0)
        for durability, event in product(DURABILITIES, EVENTS)
    ],
    add_options=add_options,
    run=run,
)
