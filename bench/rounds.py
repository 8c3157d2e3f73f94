"""Rounds of the load generator: every load on every server in turn, the best figures of each."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from typing import NamedTuple

from bench import generator
from bench.model import Bench, Lead, Metric, Note, Row
from bench.peers.durability import Durability
from bench.peers.fleet import Fleet, Target
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import BEFORE, Kproto
from bench.peers.server import DEFAULTS, Peer

PEERS: tuple[Peer, ...] = (Kproto(), *BEFORE, Kfake(), Kafka())


class Load(NamedTuple):
    """One run of the load generator."""

    title: str
    flags: Mapping[str, object]
    """The load generator's flags; the name of a group is followed by the number of the round."""
    figures: Mapping[str, Mapping[Metric, str]]
    """The cases that the run measures, by title: their metrics, and the load generator's names of them."""


def measure(
    bench: Bench,
    loads: Sequence[Load],
    options: Namespace,
    note: Note,
    partitions: Sequence[int],
    settings: Mapping[str, str] = DEFAULTS,
) -> list[Row]:
    """Start all servers, and run all loads in each round; return the rows. The first round is not counted."""
    program = generator.program()
    samples: dict[str, dict[Target, list[dict[str, float]]]] = {}
    with ExitStack() as stack:
        fleet = Fleet(stack, note, settings)
        fleet.start([peer for peer in PEERS if peer.name in options.only], options.durability, partitions)
        for nth, load, target, server in fleet.rounds(1 + options.rounds, loads):
            flags = {**load.flags, "group": f"{load.flags['group']}-{nth}-", "pid": server.pid}
            result = generator.run(program, server.port, f"{target}, {load.title}", flags)
            for case, names in load.figures.items() if nth > 0 else ():
                figures = {metric.key: float(result[name]) for metric, name in names.items()}
                samples.setdefault(case, {}).setdefault(target, []).append(figures)
    return [
        fleet.measured(bench.name, f"{durability}, {case}", durability, samples.get(case, {}), list(names))
        for durability, load in product(options.durability, loads)
        for case, names in load.figures.items()
    ]


def leads_kafka(metric: Metric, durabilities: Sequence[Durability], cases: Sequence[object]) -> list[Lead]:
    """Return a floor for each row that `measure` makes of these cases: kproto is at least as good as real Kafka."""
    return [
        Lead(case=f"{durability}, {case}", metric=metric, peer=Kafka.name, at_least=1.0)
        for durability, case in product(durabilities, cases)
    ]
