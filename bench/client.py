"""Throughput of kproto.client's consumer, in messages per second, compared with confluent-kafka's, which it wraps, and
of its async consumer compared with aiokafka's.

Method: one kproto broker in memory. Each round fills a topic with small messages; each consumer in turn reads the topic
to its end, in a new group and a new process. Every second round reverses the order of the consumers. The measurement
starts with a consumer's first message, so it excludes the join. The first round is a warm-up; each figure is the best
round, and each ratio the median of the rounds' ratios: consumers that are compared run directly after each other. All
consumers request up to 1 MB of each partition, by default, and decode nothing. librdkafka's queues are short, so that
they do not hold the whole topic. Messages per CPU second are
those of the client's process, threads of librdkafka included: the broker takes time of the same processors. For the
async consumers, on asyncio, also the time from the `subscribe` of a second, connected consumer to its first message is
measured, while the first member processes each message for 50 ms; both send heartbeats every 3 s, by default.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from time import monotonic
from typing import TYPE_CHECKING, Any

from bench import async_client
from bench.async_client import AIOKAFKA
from bench.model import KPROTO, Bench, BenchError, Lead, Metric, Note, Row, best_of
from bench.options import count
from bench.own_process import Clock, Speed, in_own_process
from bench.peers.fleet import Fleet
from bench.peers.kproto import Kproto
from bench.records import CONSUMER, PATIENCE_SECONDS, Load, Size, Topic, library_version, producing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RATE = Metric(key="messages_per_s", title="messages/s", more_is_better=True, compared=True, digits=0)
CPU_RATE = Metric(key="messages_per_cpu_s", title="messages/CPU s", more_is_better=True, compared=True, digits=0)
REBALANCE = Metric(key="rebalance_ms", title="rebalance ms", compared=True, digits=0)
CONFLUENT = "confluent-kafka"
PARTITIONS = 4
SIZE = Size(100, 1000)
CONSUME_COUNT = 500
CALLS = ("poll()", f"consume({CONSUME_COUNT})")
SHORT_QUEUES = {"queued.min.messages": 10_000, "fetch.queue.backoff.ms": 1}
SETTINGS = {**CONSUMER, **SHORT_QUEUES, "auto.offset.reset": "earliest"}
JOIN_ROUNDS = 3
"""Rounds in which the time of a rebalance is measured; it takes as long as the rest of a round."""
ASYNC_LEAD_MIN, ASYNC_JOIN_LEAD_MIN = 1.5, 0.9
ASYNC_JOIN = "async, a member joins"
OFF_SHARE_MIN, ON_SHARE_MIN, CATCH_UP_SHARE_MIN = 0.9, 0.85, 0.85


@dataclass(frozen=True, eq=False, slots=True)
class Mode:
    """A configuration of the consumer."""

    name: str
    settings: Mapping[str, Any]
    """Settings of kproto's consumer in addition to confluent-kafka's."""
    starts_behind: bool
    """Whether the group has committed offset 0, so that the whole log is the catch-up range."""
    share_min: float


OFF = Mode("features off", {}, False, OFF_SHARE_MIN)
ON = Mode(
    "features on",
    {
        "auto.offset.reset.on.no.initial.offset": "earliest_on_start",
        "auto.offset.reset.on.invalid.offset": "nearest",
        "enable.parallel.rebalance": True,
    },
    False,
    ON_SHARE_MIN,
)
CATCH_UP = Mode("catching up", {"enable.parallel.rebalance": True}, True, CATCH_UP_SHARE_MIN)
MODES = (OFF, ON, CATCH_UP)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--messages", type=count, default=300_000, metavar="N", help="per run (default: 300,000)")
    parser.add_argument("--rounds", type=count, default=9, metavar="N", help="number of measured rounds (default: 9)")


def run(options: Namespace, note: Note) -> list[Row]:
    note(f"client: librdkafka {library_version()}")
    kinds = [kind for kind in (KPROTO, CONFLUENT) if kind in options.only]
    async_kinds = [kind for kind in (KPROTO, AIOKAFKA) if kind in options.only]
    async_samples: dict[str, dict[str, list[Speed]]] = {}
    rebalances: dict[str, list[float]] = {}
    load = Load(SIZE, max(1, options.messages // SIZE.messages))
    samples: dict[tuple[Mode, str], dict[str, list[Speed]]] = {case: {} for case in _cases()}
    with ExitStack() as stack:
        fleet = Fleet(stack, note)
        fleet.start([Kproto()], ["memory"], [PARTITIONS])
        (server,) = fleet.servers.values()
        for round_number in range(1 + options.rounds):
            topic = Topic(server.port, f"client-{round_number}", PARTITIONS)
            with topic.there():
                with producing(topic, load) as produce:
                    produce()
                for (mode, call), kind in product(_cases(), kinds[:: -1 if round_number % 2 else 1]):
                    group = f"{kind}-{MODES.index(mode)}-{CALLS.index(call)}-{round_number}"
                    config = {**topic.server, **SETTINGS, "group.id": group}
                    if mode.starts_behind:
                        _commit_start(config, topic)
                    settings = {**config, **mode.settings} if kind == KPROTO else config
                    speed = in_own_process(_read, kind, settings, topic, load, call)
                    if round_number > 0:
                        samples[mode, call].setdefault(kind, []).append(speed)
                for call, kind in product(async_client.CALLS, async_kinds[:: -1 if round_number % 2 else 1]):
                    group = f"async-{kind}-{round_number}-{call}"
                    speed = in_own_process(async_client.read, kind, topic, load, call, group)
                    if round_number > 0:
                        async_samples.setdefault(call, {}).setdefault(kind, []).append(speed)
                if 0 < round_number <= JOIN_ROUNDS:
                    for kind in async_kinds:
                        group = f"async-{kind}-{round_number}"
                        _commit_start({**topic.server, "group.id": f"{group}-join"}, topic)
                        rebalance_ms = in_own_process(async_client.rebalance_ms, kind, topic, f"{group}-join")
                        rebalances.setdefault(kind, []).append(rebalance_ms)
    rows = [_row(_case_name(mode, call), found) for (mode, call), found in samples.items()]
    rows += [_row(f"async, {call}", found) for call, found in async_samples.items()]
    joins = {kind: {REBALANCE.key: REBALANCE.best(figures)} for kind, figures in rebalances.items()}
    return [*rows, *([Row(bench=BENCH.name, case=ASYNC_JOIN, figures=joins)] if joins else [])]


def _row(case: str, found: Mapping[str, list[Speed]]) -> Row:
    rounds = {
        kind: [{RATE.key: each.per_s, CPU_RATE.key: each.per_cpu_s} for each in speeds]
        for kind, speeds in found.items()
    }
    figures = {kind: best_of(each, (RATE, CPU_RATE)) for kind, each in rounds.items()}
    return Row(bench=BENCH.name, case=case, figures=figures, rounds=rounds)


def _cases() -> list[tuple[Mode, str]]:
    return list(product(MODES, CALLS))


def _case_name(mode: Mode, call: str) -> str:
    return f"{mode.name}, {call}"


def _commit_start(config: dict[str, Any], topic: Topic) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(config)
    consumer.commit(
        offsets=[TopicPartition(topic.name, index, 0) for index in range(topic.partitions)], asynchronous=False
    )
    consumer.close()


def _read(kind: str, settings: Mapping[str, Any], topic: Topic, load: Load, call: str) -> Speed:
    """Read the whole topic; return the speed from the first message on."""
    if kind == KPROTO:
        from kproto.client import Consumer
    else:
        from confluent_kafka import Consumer  # type: ignore[assignment]  # the class that kproto's derives from
    consumer = Consumer(dict(settings))
    consumer.subscribe([topic.name])
    deadline = monotonic() + PATIENCE_SECONDS
    received, clock = 0, Clock()
    messages: Sequence[Any]
    while received < load.messages:
        if call == CALLS[0]:
            message = consumer.poll(1.0)
            messages = () if message is None else (message,)
        else:
            messages = consumer.consume(CONSUME_COUNT, 1.0)
        for message in messages:
            if message.error() is not None:
                raise BenchError(f"a consumer received an error: {message.error()}")
        if messages and not received:
            clock = Clock()
        received += len(messages)
        if not messages and monotonic() > deadline:
            raise BenchError(f"{received} of {load.messages} messages received after {PATIENCE_SECONDS:.0f} s")
    speed = clock.speed(received)
    consumer.close()
    return speed


BENCH = Bench(
    name="client",
    summary="kproto.client's consumer compared with confluent-kafka's, and its async one with aiokafka's",
    metrics=[RATE, CPU_RATE, REBALANCE],
    peers=[KPROTO, CONFLUENT, AIOKAFKA],
    floors=[
        *(
            Lead(case=_case_name(mode, call), metric=RATE, peer=CONFLUENT, at_least=mode.share_min)
            for mode, call in _cases()
        ),
        *(
            Lead(case=f"async, {call}", metric=RATE, peer=AIOKAFKA, at_least=ASYNC_LEAD_MIN)
            for call in async_client.CALLS
        ),
        Lead(case=ASYNC_JOIN, metric=REBALANCE, peer=AIOKAFKA, at_least=ASYNC_JOIN_LEAD_MIN),
    ],
    add_options=add_options,
    run=run,
)
