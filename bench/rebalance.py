"""Time until all members of a group have their assignment, beside kfake and real Kafka.

Method: the load generator plays all members, each on its own open connection. All members join at once, then one more
joins, then that one leaves. Real clients learn of a rebalance with their next heartbeat, every three seconds; these
members send a heartbeat as soon as a rebalance has begun, so that the coordinator alone is measured. Members of the
consumer protocol (KIP-848) send one after another as long as partitions are missing. All servers are started and
measured in turn. The first round is not counted, and each figure is the best of its rounds.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from itertools import product

from bench.model import KPROTO, Bench, Lead, Metric, Note, Row, counted
from bench.options import add_durability, add_rounds, counts
from bench.peers.durability import Durability
from bench.peers.kafka import Kafka
from bench.rounds import PEERS, Load, measure

TIME = Metric(key="ms", title="ms", compared=True)
SERVER_CPU = Metric(key="server_cpu_ms", title="server CPU ms", digits=0)
SETTINGS = {"group.consumer.assignment.interval.ms": "0"}
"""Kafka waits a second between two assignments by default. No server has an initial rebalance delay."""
PROTOCOLS = {"rebalance": "", "consumer-rebalance": "consumer protocol, "}
"""The load generator's name of each protocol, and its title."""
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
    loads = [_load(mode, members) for mode, members in product(PROTOCOLS, options.members)]
    return measure(BENCH, loads, options, note, [1], SETTINGS)


def _load(mode: str, members: int) -> Load:
    flags: dict[str, object] = {"mode": mode, "conns": members, "group": f"{mode}-{members}"}
    if mode == "consumer-rebalance":
        flags |= {"topic": f"{mode}-{members}-", "parts": members + 1}
    figures = {named(mode, members, event): {TIME: f"{event}_ms", SERVER_CPU: f"{event}_cpu_ms"} for event in EVENTS}
    return Load(f"{PROTOCOLS[mode]}{members} members", flags, figures)


def named(mode: str, members: int, event: str) -> str:
    return f"{PROTOCOLS[mode]}{counted(members, 'member')}: {EVENTS[event]}"


BENCH = Bench(
    name="rebalance",
    summary="time until all members of a group have their assignment, beside kfake and real Kafka",
    metrics=[TIME, SERVER_CPU],
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=[
        Lead(case=f"{durability}, {named(mode, FLOOR_MEMBERS, event)}", metric=TIME, peer=Kafka.name, at_least=1.0)
        for durability, mode, event in product(DURABILITIES, PROTOCOLS, EVENTS)
    ],
    add_options=add_options,
    run=run,
)
