"""Records per second that the members of a share group fetch and acknowledge, beside kfake and real Kafka.

Method: the load generator plays all members of a new share group, each on a connection of its own. They fetch once, so
that the group begins at the end of the topic; then it writes the records, in batches of 100, and the members read them:
each fetch wants 500 records, and acknowledges those of the fetch before it. All servers are started and measured in
turn. The first round is not counted, and each figure is the best of its rounds.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from itertools import product
from typing import NamedTuple

from bench.model import KPROTO, Bench, Metric, Note, Row, counted
from bench.options import add_durability, add_rounds, count
from bench.peers.durability import Durability
from bench.rounds import PEERS, Load, leads_kafka, measure

RATE = Metric(key="records_per_s", title="records/s", more_is_better=True, compared=True, digits=0)
P99 = Metric(key="p99_us", title="p99 us of a fetch", digits=0)
SERVER_CPU = Metric(key="server_cpu_us", title="server CPU us", digits=2)
METRICS = {RATE: "records_s", P99: "p99_us", SERVER_CPU: "server_cpu_us_per_record"}
"""The load generator's name of each metric."""
DURABILITIES: tuple[Durability, ...] = ("memory", "os")
MEMBERS = (1, 16)
PARTITIONS = (1, 10)
RECORDS = 100_000


class Case(NamedTuple):
    """The members of the group."""

    members: int
    partitions: int

    def __str__(self) -> str:
        return f"{counted(self.members, 'member')}, {counted(self.partitions, 'partition')}"


CASES = [Case(*case) for case in product(MEMBERS, PARTITIONS)]


def add_options(parser: ArgumentParser) -> None:
    add_durability(parser, DURABILITIES)
    add_rounds(parser, 3)
    parser.add_argument("--records", type=count, default=RECORDS, metavar="N", help=f"{RECORDS:,} if not given")


def run(options: Namespace, note: Note) -> list[Row]:
    return measure(BENCH, [_load(case, options.records) for case in CASES], options, note, PARTITIONS)


def _load(case: Case, records: int) -> Load:
    flags = {
        "mode": "shares",
        "conns": case.members,
        "parts": case.partitions,
        "topic": f"shares-{case.partitions}-",
        "group": f"shares-{case.members}-{case.partitions}",
        "records": records,
    }
    return Load(str(case), flags, {str(case): METRICS})


BENCH = Bench(
    name="shares",
    summary="records per second of a share group, beside kfake and real Kafka",
    metrics=list(METRICS),
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=leads_kafka(RATE, DURABILITIES, CASES),
    add_options=add_options,
    run=run,
)
