"""What `kproto proxy` costs: round trips and records through it, beside the same broker directly.

Method: one broker of kproto runs in memory, with the proxy in front of it. In each round the same clients measure both,
directly (``direct``) and through the proxy (``kproto``): one connection that sends a request and waits for its
response, again and again, and librdkafka as in `bench.throughput`. The first round is not counted. A round trip is the
median of its round, and each figure is the best of its rounds.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import ExitStack, closing
from statistics import median
from time import perf_counter

from bench.model import KPROTO, Bench, BenchError, Lead, Limit, Metric, Note, Row, best_of
from bench.options import add_rounds, count
from bench.peers.kproto import Kproto
from bench.peers.server import HOST, Launch, started
from bench.records import Load, Topic, library_version
from bench.throughput import BATCH_SIZE_BYTES, LARGE, MEGABYTE, WAYS
from bench.wire import API_VERSIONS, ask, connect

MEDIAN = Metric(key="p50_us", title="p50 us")
ADDED = Metric(key="added_us", title="added us")
RATE = Metric(key="mb_per_s", title="MB/s", more_is_better=True, compared=True)
METRICS = (MEDIAN, ADDED, RATE)
DIRECT = "direct"
ROUND_TRIP = "round trip"
ADDED_MAX_US = 200.0
SHARE_MIN = 0.5
PARTITIONS = 4
WARM_UP = 100
Figures = dict[str, float]


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--megabytes", type=count, default=200, metavar="N", help="per run; 200 if not given")
    parser.add_argument("--requests", type=count, default=3000, metavar="N", help="round trips; 3000 if not given")
    add_rounds(parser, 3)


def run(options: Namespace, note: Note) -> list[Row]:
    note(f"client: librdkafka {library_version()}")
    load = Load(LARGE, options.megabytes * MEGABYTE // BATCH_SIZE_BYTES)
    samples: dict[str, dict[str, list[Figures]]] = {}
    with ExitStack() as stack:
        launch = stack.enter_context(Kproto().ready([PARTITIONS]))
        broker = stack.enter_context(started(launch))
        words = ["proxy", "--upstream", f"{HOST}:{broker.port}", "--port", "0"]
        proxy = stack.enter_context(started(Launch(version=launch.version, argv=[launch.argv[0], *words])))
        ports = {DIRECT: broker.port, KPROTO: proxy.port}
        for nth in range(1 + options.rounds):
            for name, port in ports.items():
                found = _measured(Topic(port, f"proxy-{nth}", PARTITIONS), load, options.requests)
                if nth > 0:
                    for case, figures in found.items():
                        samples.setdefault(case, {}).setdefault(name, []).append(figures)
    return [_row(case, rounds, options.only) for case, rounds in samples.items()]


def _measured(topic: Topic, load: Load, request_count: int) -> dict[str, Figures]:
    found = {ROUND_TRIP: {MEDIAN.key: _round_trip_us(topic.port, request_count)}}
    with topic.there():
        for way, prepared in WAYS.items():
            with prepared(topic, load) as move:
                began = perf_counter()
                moved = move()
                seconds = perf_counter() - began
            if moved != load.messages:
                raise BenchError(f"{way}: {moved} of {load.messages} messages arrived within {seconds:.0f} s")
            found[way] = {RATE.key: load.messages * load.size.message_bytes / MEGABYTE / seconds}
    return found


def _round_trip_us(port: int, request_count: int) -> float:
    """Return the median time of a request until its response."""
    with closing(connect(port)) as stream:
        times = []
        for _ in range(WARM_UP + request_count):
            began = perf_counter()
            ask(stream, API_VERSIONS, 0, b"")
            times.append(perf_counter() - began)
    return median(times[WARM_UP:]) * 1e6


def _row(case: str, rounds: Mapping[str, list[Figures]], only: list[str]) -> Row:
    metric = MEDIAN if case == ROUND_TRIP else RATE
    figures = {name: best_of(samples, [metric]) for name, samples in rounds.items()}
    if metric is MEDIAN:
        figures[KPROTO][ADDED.key] = figures[KPROTO][MEDIAN.key] - figures[DIRECT][MEDIAN.key]
    return Row(bench=BENCH.name, case=case, figures={name: figures[name] for name in figures if name in only})


BENCH = Bench(
    name="proxy",
    summary="round trips and records through kproto proxy, beside the same broker directly",
    metrics=METRICS,
    peers=[KPROTO, DIRECT],
    floors=[
        Limit(case=ROUND_TRIP, metric=ADDED, at_most=ADDED_MAX_US),
        *(Lead(case=way, metric=RATE, peer=DIRECT, at_least=SHARE_MIN) for way in WAYS),
    ],
    add_options=add_options,
    run=run,
)
