"""kproto.client's consumer beside confluent-kafka's, which it wraps: how many messages a second a program gets.

Method: one kproto broker in memory; in each round a topic of small messages is filled, and read to its end by each kind
of consumer in turn, the other way round in every second round, each in a group of its own. The clock starts with a
consumer's first message, so that joining is not in it. The first round is not counted, and each figure is the best of
its rounds.
"""

from __future__ import annotations

import gc
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

from bench.model import KPROTO, Bench, BenchError, Lead, Metric, Note, Row
from bench.options import count
from bench.peers.fleet import Fleet
from bench.peers.kproto import Kproto
from bench.records import CONSUMER, PATIENCE_SECONDS, Load, Size, Topic, library_version, producing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RATE = Metric(key="messages_per_s", title="messages/s", more_is_better=True, compared=True, digits=0)
CONFLUENT = "confluent-kafka"
PARTITIONS = 4
SIZE = Size(100, 1000)
AT_ONCE = 500
CALLS = ("poll()", f"consume({AT_ONCE})")
OFF_SHARE_MIN, ON_SHARE_MIN, CATCH_UP_SHARE_MIN = 0.9, 0.8, 0.8


@dataclass(frozen=True, eq=False, slots=True)
class Mode:
    """What the consumer is asked to do."""

    name: str
    settings: Mapping[str, Any]
    """Beside those of the bare one."""
    commits_first: bool
    """Whether the group has committed the log's beginning, and all is to be caught up with."""
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
    parser.add_argument("--messages", type=count, default=1_000_000, metavar="N", help="a run; 1,000,000 if not given")
    parser.add_argument("--rounds", type=count, default=4, metavar="N", help="best of so many; 4 if not given")


def run(options: Namespace, note: Note) -> list[Row]:
    note(f"client: librdkafka {library_version()}")
    from confluent_kafka import Consumer as Bare

    from kproto.client import Consumer as Wrapped

    kinds: dict[str, Callable[[dict[str, Any]], Bare]] = {KPROTO: Wrapped, CONFLUENT: Bare}
    load = Load(SIZE, max(1, options.messages // SIZE.messages))
    samples: dict[tuple[Mode, str], dict[str, list[float]]] = {case: {} for case in _cases()}
    with ExitStack() as stack:
        fleet = Fleet(stack, note)
        fleet.start([Kproto()], ["memory"], [PARTITIONS])
        (server,) = fleet.servers.values()
        for nth in range(1 + options.rounds):
            topic = Topic(server.port, f"client-{nth}", PARTITIONS)
            with topic.there():
                with producing(topic, load) as produce:
                    produce()
                turns = [kind for kind in kinds if kind in options.only]
                for (mode, call), kind in product(_cases(), turns[:: -1 if nth % 2 else 1]):
                    group = f"{kind}-{MODES.index(mode)}-{CALLS.index(call)}-{nth}"
                    config = {**topic.server, **CONSUMER, "group.id": group, "auto.offset.reset": "earliest"}
                    if mode.commits_first:
                        _commit_beginning(Bare(config), topic)
                    settings = {**config, **mode.settings} if kind == KPROTO else config
                    rate = _read(kinds[kind](settings), topic, load, call)
                    if nth > 0:
                        samples[mode, call].setdefault(kind, []).append(rate)
    return [
        Row(bench=BENCH.name, case=_named(mode, call), figures={kind: {RATE.key: max(r)} for kind, r in found.items()})
        for (mode, call), found in samples.items()
    ]


def _cases() -> list[tuple[Mode, str]]:
    return list(product(MODES, CALLS))


def _named(mode: Mode, call: str) -> str:
    return f"{mode.name}, {call}"


def _commit_beginning(consumer: Any, topic: Topic) -> None:
    from confluent_kafka import TopicPartition

    consumer.commit(
        offsets=[TopicPartition(topic.name, index, 0) for index in range(topic.partitions)], asynchronous=False
    )
    consumer.close()


def _read(consumer: Any, topic: Topic, load: Load, call: str) -> float:
    """Read the whole topic; return messages a second, from the first one on."""
    consumer.subscribe([topic.name])
    gc.collect()
    deadline = monotonic() + PATIENCE_SECONDS
    found, began = 0, 0.0
    while found < load.messages:
        if call == CALLS[0]:
            message = consumer.poll(1.0)
            messages = () if message is None else (message,)
        else:
            messages = consumer.consume(AT_ONCE, 1.0)
        for message in messages:
            if message.error() is not None:
                raise BenchError(f"a consumer was told: {message.error()}")
        if messages and not found:
            began = perf_counter()
        found += len(messages)
        if not messages and monotonic() > deadline:
            raise BenchError(f"{found} of {load.messages} messages had come after {PATIENCE_SECONDS:.0f} s")
    seconds = perf_counter() - began
    consumer.close()
    return found / seconds


BENCH = Bench(
    name="client",
    summary="kproto.client's consumer beside confluent-kafka's own",
    metrics=[RATE],
    peers=[KPROTO, CONFLUENT],
    floors=[
        Lead(case=_named(mode, call), metric=RATE, peer=CONFLUENT, at_least=mode.share_min) for mode, call in _cases()
    ],
    add_options=add_options,
    run=run,
)
