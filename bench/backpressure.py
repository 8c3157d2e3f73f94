"""Commits of a normal client alone and beside clients that slow down the server: the cost of one client for another.

Method: all servers are started, and each gets a topic with 40 MB of records. In each round the same client loads each
server three times: alone, beside 1,000 idle connections, and beside one client that requests all those records again
and again and reads no response. The first round is not counted. Each figure is the best of its rounds, and ratios
compare figures of one server.
"""

from __future__ import annotations

import resource
import socket
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import product
from struct import pack

from bench import generator
from bench.commit import ONE_BY_ONE, PIPELINED, Case, measured, of_case
from bench.model import KPROTO, Bench, BenchError, Limit, Metric, Note, Row, best_of
from bench.options import add_rounds, add_seconds
from bench.peers.fleet import Fleet, Target
from bench.peers.kafka import Kafka
from bench.peers.kfake import Kfake
from bench.peers.kproto import BEFORE, Kproto
from bench.peers.server import Peer, Server
from bench.records import Load, Size, Topic, producing
from bench.wire import API_VERSIONS, CLIENT_ID, ask, connect, text

REQUESTS = Metric(key="requests_per_s", title="requests/s", more_is_better=True, digits=0)
P99 = Metric(key="p99_us", title="p99 us")
SLOWER = Metric(key="times_slower", title="times slower than alone", digits=2)
LATER = Metric(key="p99_times_later", title="p99 times later", digits=2)
METRICS = (REQUESTS, P99, SLOWER, LATER)
MEASURED = (REQUESTS, P99)
PEERS: tuple[Peer, ...] = (Kproto(), *BEFORE, Kfake(), Kafka())
CASES = tuple(Case(10, shape) for shape in (ONE_BY_ONE, PIPELINED))
SLOWER_MAX = 1.15
"""Above 1, the rest is noise."""
IDLE = 1000
SPARE_FILES = 100
TOPIC = "unread"
RECORDS = Load(Size(10_000, 10), 400)
"""40 MB: far more than the kernel buffers of a response."""
FETCHES = 100
FETCH, FETCH_VERSION = 1, 4
ALL_BYTES = 50 << 20
ALONE = "alone"


@contextmanager
def alone(_server: Server) -> Iterator[None]:
    yield


@contextmanager
def idle(server: Server) -> Iterator[None]:
    """Keep idle connections open."""
    with ExitStack() as stack:
        for _ in range(IDLE):
            ask(stack.enter_context(connect(server.port)), API_VERSIONS, 0, b"")
        yield


@contextmanager
def slow_reader(server: Server) -> Iterator[None]:
    """Keep a connection that requests all records again and again and reads nothing."""
    partition = pack(">iqi", 0, 0, ALL_BYTES)
    body = pack(">iiiibi", -1, 0, 1, ALL_BYTES, 0, 1) + text(TOPIC) + pack(">i", 1) + partition
    head = pack(">hhi", FETCH, FETCH_VERSION, 1) + text(CLIENT_ID)
    request = pack(">i", len(head) + len(body)) + head + body
    with connect(server.port) as stream:
        stream.sendall(request * FETCHES)
        stream.recv(1, socket.MSG_PEEK)  # the first response has begun
        yield


BESIDE: Mapping[str, Callable[[Server], AbstractContextManager[None]]] = {
    ALONE: alone,
    f"beside {IDLE:,} idle connections": idle,
    "beside one that reads nothing": slow_reader,
}


def add_options(parser: ArgumentParser) -> None:
    add_rounds(parser, 5)
    add_seconds(parser, 1.0)


Samples = dict[tuple[Case, str], dict[Target, list[dict[str, float]]]]


def run(options: Namespace, note: Note) -> list[Row]:
    load = generator.program()
    _make_room_for_files()
    samples: Samples = {key: {} for key in product(CASES, BESIDE)}
    with ExitStack() as stack:
        fleet = Fleet(stack, note)
        fleet.start([peer for peer in PEERS if peer.name in options.only], ["memory"], [CASES[0].partitions])
        for server in fleet.servers.values():
            stack.enter_context(_filled(server))
        for nth, case, target, server in fleet.rounds(1 + options.rounds, CASES):
            for beside, others in BESIDE.items():
                with others(server):
                    figures = measured(load, target, server, of_case(case, options.seconds))
                if nth > 0:
                    samples[case, beside].setdefault(target, []).append(figures)
        return [
            Row(bench=BENCH.name, case=named(case, beside), figures=fleet.row("memory", _ratios(samples, case, beside)))
            for case, beside in product(CASES, BESIDE)
        ]


def _make_room_for_files() -> None:
    """Raise the limit of open files; servers inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = IDLE + SPARE_FILES
    if soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            raise BenchError(f"{wanted} open files are needed, {hard} are allowed (ulimit -Hn)")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextmanager
def _filled(server: Server) -> Iterator[None]:
    """Keep a filled topic for the slow reader."""
    topic = Topic(server.port, TOPIC, 1)
    with topic.there():
        with producing(topic, RECORDS) as move:
            if move() != RECORDS.messages:
                raise BenchError("the topic cannot be filled")
        yield


def _ratios(samples: Samples, case: Case, beside: str) -> dict[Target, dict[str, float]]:
    """Return the best figures of each server and their ratios to the server's figures without other clients."""
    found: dict[Target, dict[str, float]] = {}
    for target, rounds in samples[case, beside].items():
        unloaded = best_of(samples[case, ALONE][target], MEASURED)
        figures = best_of(rounds, MEASURED)
        found[target] = {
            **figures,
            SLOWER.key: unloaded[REQUESTS.key] / figures[REQUESTS.key],
            LATER.key: figures[P99.key] / unloaded[P99.key],
        }
    return found


def named(case: Case, beside: str) -> str:
    return f"{case}, {beside}"


BENCH = Bench(
    name="backpressure",
    summary="commits of one client beside idle connections and beside a slow reader, as ratios",
    metrics=METRICS,
    peers=[KPROTO, *(peer.name for peer in PEERS[1:])],
    floors=[
        Limit(case=named(case, beside), metric=SLOWER, at_most=SLOWER_MAX)
        for case, beside in product(CASES, BESIDE)
        if beside != ALONE
    ],
    add_options=add_options,
    run=run,
)
