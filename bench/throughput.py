"""Throughput of records with a real client (librdkafka), beside kfake and real Kafka.

Method: all servers are started. In each round each server gets a new topic; one producer fills it and one consumer
reads it from its beginning, both connected before the clock starts. A producer's time ends when all replicas have
acknowledged all records, a consumer's with the last record. The first round is not counted, and each figure is the
best of its rounds; builds of kproto are compared by the median of the rounds' ratios. The client runs in this process
and uses a processor of its own.
"""

from __future__ import annotations

import gc
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from itertools import product
from time import perf_counter, process_time
from typing import TYPE_CHECKING

from bench.model import KPROTO, Bench, BenchError, Lead, Metric, Note, Row
from bench.options import add_durability, add_rounds, count
from bench.peers.durability import Durability
from bench.peers.fleet import Fleet, Target
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import BEFORE, Kproto
from bench.peers.server import Peer, Server, processor_seconds
from bench.records import Load, Size, Topic, consuming, library_version, producing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    Way = Callable[[Topic, Load], AbstractContextManager[Callable[[], int]]]

RATE = Metric(key="mb_per_s", title="MB/s", more_is_better=True, compared=True)
MESSAGES = Metric(key="messages_per_s", title="messages/s", more_is_better=True, digits=0)
SERVER_CPU = Metric(key="server_cpu_ms_per_mb", title="server CPU ms/MB", compared=True, digits=2)
CLIENT_CPU = Metric(key="client_cpu_ms_per_mb", title="client CPU ms/MB", digits=2)
"""Beside the server's it shows which of them limits a row: a megabyte cannot take less than either."""
METRICS = (RATE, MESSAGES, SERVER_CPU, CLIENT_CPU)
PEERS: tuple[Peer, ...] = (Kproto(), *BEFORE, Kfake(), Kafka())
DURABILITIES: tuple[Durability, ...] = ("memory", "os")
PARTITIONS = 4
BATCH_SIZE_BYTES = 100_000
MEGABYTE = 1_000_000
WAYS: Mapping[str, Way] = {"produce": producing, "consume": consuming}
KAFKA_SHARE_MIN = 0.25


LARGE, SMALL = SIZES = (Size(10_000, BATCH_SIZE_BYTES // 10_000), Size(100, BATCH_SIZE_BYTES // 100))
SMALL_SHARE = 4
"""A run with small messages moves a quarter of the bytes: they cost the client more than the server."""


def add_options(parser: ArgumentParser) -> None:
    add_durability(parser, DURABILITIES)
    parser.add_argument("--megabytes", type=count, default=200, metavar="N", help="per run; 200 if not given")
    add_rounds(parser, 3)


Figures = dict[str, float]
Samples = dict[tuple[Size, str], dict[Target, list[Figures]]]


def run(options: Namespace, note: Note) -> list[Row]:
    note(f"client: librdkafka {library_version()}")
    samples: Samples = {case: {} for case in product(SIZES, WAYS)}
    with ExitStack() as stack:
        fleet = Fleet(stack, note)
        fleet.start([peer for peer in PEERS if peer.name in options.only], options.durability, [PARTITIONS])
        for nth, size, target, server in fleet.rounds(1 + options.rounds, SIZES):
            megabytes = options.megabytes / (SMALL_SHARE if size is SMALL else 1)
            load = Load(size, int(megabytes * MEGABYTE) // BATCH_SIZE_BYTES)
            topic = Topic(server.port, f"throughput-{size.message_bytes}-{nth}", PARTITIONS)
            with topic.there():
                for way, prepared in WAYS.items():
                    figures = timed(prepared(topic, load), load, server, str(target))
                    if nth > 0:
                        samples[size, way].setdefault(target, []).append(figures)
    return [
        fleet.measured(BENCH.name, named(durability, way, size), durability, samples[size, way], METRICS)
        for durability, size, way in product(options.durability, SIZES, WAYS)
    ]


def timed(prepared: AbstractContextManager[Callable[[], int]], load: Load, server: Server, who: str) -> Figures:
    """Connect the client, move the messages, and return the figures."""
    with prepared as move:
        gc.collect()
        cpu, client_cpu, began = processor_seconds(server.pid), process_time(), perf_counter()
        moved = move()
        seconds = perf_counter() - began
        cpu, client_cpu = processor_seconds(server.pid) - cpu, process_time() - client_cpu
    if moved != load.messages:
        raise BenchError(f"{who}: {moved} of {load.messages} messages arrived within {seconds:.0f} s")
    megabytes = load.messages * load.size.message_bytes / MEGABYTE
    return {
        RATE.key: megabytes / seconds,
        MESSAGES.key: load.messages / seconds,
        SERVER_CPU.key: cpu * 1000 / megabytes,
        CLIENT_CPU.key: client_cpu * 1000 / megabytes,
    }


def named(durability: Durability, way: str, size: Size) -> str:
    return f"{durability}, {way} {size}"


BENCH = Bench(
    name="throughput",
    summary="records produced and consumed by librdkafka, beside kfake and real Kafka",
    metrics=METRICS,
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=[
        Lead(case=named(durability, way, size), metric=RATE, peer=Kafka.name, at_least=KAFKA_SHARE_MIN)
        for durability, size, way in product(DURABILITIES, SIZES, WAYS)
    ],
    add_options=add_options,
    run=run,
)
