"""Handshakes, commits and records over SASL_SSL, beside real Kafka with the same settings.

Method: both servers have the same certificate, TLS 1.3 and SASL/PLAIN, and keep nothing (`memory`; Kafka has its page
cache). In each round each load runs against each server in turn. A handshake is a new connection: TCP, TLS without a
resumed session, SaslHandshake, SaslAuthenticate, and the end of it. Commits are those of `bench.commit`, records those
of `bench.throughput`, over connections that are authenticated before the clock starts. The first round is not counted,
and each figure is the best of its rounds.
"""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench import generator
from bench.commit import CONNECTIONS, ONE_BY_ONE, PIPELINED, Case, of_case
from bench.model import Bench, Lead, Metric, Note, Row
from bench.options import add_rounds, add_seconds, count
from bench.peers.durability import Durability
from bench.peers.fleet import Fleet, Target
from bench.peers.kafka import Kafka
from bench.peers.secured import MECHANISM, NAMES, PASSWORD, PROTOCOL, USER, Certificates, secured_peers
from bench.peers.server import Server
from bench.records import Load, Topic
from bench.throughput import BATCH_SIZE_BYTES, CLIENT_CPU, LARGE, MEGABYTE, WAYS, timed
from bench.throughput import RATE as MB_RATE
from bench.throughput import SERVER_CPU as MB_SERVER_CPU

RATE = Metric(key="per_s", title="per second", more_is_better=True, compared=True, digits=0)
P99 = Metric(key="p99_us", title="p99 us", digits=0)
SERVER_CPU = Metric(key="server_cpu_us", title="server CPU us", compared=True, digits=0)
OF_LOAD = {RATE.key: "requests_s", P99.key: "p99_us", SERVER_CPU.key: "server_cpu_us_per_request"}
"""The load generator's name of each metric."""
METRICS = (RATE, P99, SERVER_CPU, MB_RATE, MB_SERVER_CPU, CLIENT_CPU)
MEMORY: Durability = "memory"
AT_A_TIME = (1, 16)
RECORDS = "records"
PARTITIONS = 10
TOPIC_PARTITIONS = 4
LEAD = 1.5
Figures = dict[str, float]


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--megabytes", type=count, default=100, metavar="N", help="of records; 100 if not given")
    add_rounds(parser, 3)
    add_seconds(parser, 2.0)


def _loads(duration: float) -> dict[str, Mapping[str, object]]:
    """Return the load generator's flags of each case."""
    loads: dict[str, Mapping[str, object]] = {
        f"handshakes, {conns} at a time": {"mode": "handshakes", "conns": conns, "duration": duration}
        for conns in AT_A_TIME
    }
    for shape in (ONE_BY_ONE, CONNECTIONS, PIPELINED):
        case = Case(PARTITIONS, shape)
        loads[f"commits, {case}"] = of_case(case, duration)
    return loads


def run(options: Namespace, note: Note) -> list[Row]:
    program = generator.program()
    samples: dict[str, dict[Target, list[Figures]]] = {case: {} for case in CASES}
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="kproto-bench-"))
        certificates = Certificates(Path(directory))
        fleet = Fleet(stack, note)
        peers = [peer for peer in secured_peers(certificates) if peer.name in options.only]
        fleet.start(peers, [MEMORY], [PARTITIONS])
        loads = _loads(options.seconds)
        for nth, load, target, server in fleet.rounds(1 + options.rounds, [*loads, RECORDS]):
            if load == RECORDS:
                found = _records(server, target, certificates, options.megabytes, nth)
            else:
                found = {load: _generated(server, target, load, loads[load], program, certificates)}
            for case, figures in found.items() if nth else ():
                samples[case].setdefault(target, []).append(figures)
    return [fleet.measured(BENCH.name, case, MEMORY, found, _metrics(case)) for case, found in samples.items()]


def _metrics(case: str) -> list[Metric]:
    return [MB_RATE, MB_SERVER_CPU, CLIENT_CPU] if case in WAYS else [RATE, P99, SERVER_CPU]


def _generated(
    server: Server, target: Target, case: str, flags: Mapping[str, object], program: Path, certificates: Certificates
) -> Figures:
    secured = {"tls-ca": certificates.ca_file, "user": USER, "password": PASSWORD}
    result = generator.run(program, server.port, f"{target}, {case}", {**flags, **secured, "pid": server.pid})
    return {ours: float(result[theirs]) for ours, theirs in OF_LOAD.items()}


def _records(
    server: Server, target: Target, certificates: Certificates, megabytes: int, nth: int
) -> dict[str, Figures]:
    """Return the figures of writing and of reading."""
    load = Load(LARGE, megabytes * MEGABYTE // BATCH_SIZE_BYTES)
    topic = Topic(server.port, f"secure-{nth}", TOPIC_PARTITIONS, _client_settings(certificates))
    with topic.there():
        return {way: timed(prepared(topic, load), load, server, str(target)) for way, prepared in WAYS.items()}


def _client_settings(certificates: Certificates) -> dict[str, Any]:
    return {
        "security.protocol": PROTOCOL, "ssl.ca.location": str(certificates.ca_file), "sasl.mechanism": MECHANISM,
        "sasl.username": USER, "sasl.password": PASSWORD,
    }  # fmt: skip


CASES = [*_loads(0.0), *WAYS]
BENCH = Bench(
    name="secure",
    summary="handshakes, commits and records over SASL_SSL, beside real Kafka",
    metrics=METRICS,
    peers=NAMES,
    floors=[
        Lead(case=case, metric=MB_RATE if case in WAYS else RATE, peer=Kafka.name, at_least=LEAD) for case in CASES
    ],
    add_options=add_options,
    run=run,
)
