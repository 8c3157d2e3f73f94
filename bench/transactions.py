"""Transactions per second, beside kfake and real Kafka.

Method: the load generator plays all producers, each with a transactional id and a connection of its own, and sends the
requests of clients before 4.0: it adds the partitions, writes one record to each, and commits or aborts; or it adds the
offsets of a group, and commits one of each partition. Brokers that still end the last transaction get the request again
after 0.1 ms. All servers are started and measured in turn. The first round is not counted, and each figure is the best
of its rounds.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

from bench.model import KPROTO, Bench, Metric, Note, Row, counted
from bench.options import add_durability, add_rounds, add_seconds
from bench.peers.durability import Durability
from bench.rounds import PEERS, Load, leads_kafka, measure

RATE = Metric(key="transactions_per_s", title="transactions/s", more_is_better=True, compared=True, digits=0)
P99 = Metric(key="p99_us", title="p99 us", digits=0)
SERVER_CPU = Metric(key="server_cpu_us", title="server CPU us", digits=0)
METRICS = {RATE: "requests_s", P99: "p99_us", SERVER_CPU: "server_cpu_us_per_request"}
"""The load generator's name of each metric."""
DURABILITIES: tuple[Durability, ...] = ("memory", "os")
PRODUCERS = (1, 16)
PARTITIONS = (1, 10)
ENDS: Mapping[str, Mapping[str, object]] = {"commit": {}, "abort": {"abort": "true"}, "offsets": {"offsets": "true"}}


class Case(NamedTuple):
    """What the producers do."""

    end: str
    producers: int
    partitions: int

    def __str__(self) -> str:
        return f"{self.end}, {counted(self.producers, 'producer')}, {counted(self.partitions, 'partition')}"


CASES = [Case(*case) for case in product(ENDS, PRODUCERS, PARTITIONS)]


def add_options(parser: ArgumentParser) -> None:
    add_durability(parser, DURABILITIES)
    add_rounds(parser, 3)
    add_seconds(parser, 2.0)


def run(options: Namespace, note: Note) -> list[Row]:
    return measure(BENCH, [_load(case, options.seconds) for case in CASES], options, note, PARTITIONS)


def _load(case: Case, duration: float) -> Load:
    flags = {
        "mode": "transactions",
        "conns": case.producers,
        "parts": case.partitions,
        "topic": f"transactions-{case.partitions}-",
        "group": f"{case.end}-{case.partitions}",
        "duration": duration,
        **ENDS[case.end],
    }
    return Load(str(case), flags, {str(case): METRICS})


BENCH = Bench(
    name="transactions",
    summary="transactions per second, beside kfake and real Kafka",
    metrics=list(METRICS),
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=leads_kafka(RATE, DURABILITIES, CASES),
    add_options=add_options,
    run=run,
)
