"""Compare kproto's Consumer with confluent-kafka's in each mode.

`python -m tests.kproto_client.parity BOOTSTRAP [--consumer-protocol]` prints the release of confluent-kafka and each
difference; it exits with 1 if there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import confluent_kafka

from kproto.client import Consumer
from tests.kproto_client.kafka_fixture import KafkaFixture, unique_name
from tests.kproto_client.parity_behaviors import BEHAVIORS, group
from tests.kproto_client.parity_calls import RECORDS, Outcomes, Program, outcomes

INITIAL = "auto.offset.reset.on.no.initial.offset"
NEAREST = {"auto.offset.reset.on.invalid.offset": "nearest"}
PARALLEL = {"enable.parallel.rebalance": True}
STRATEGIES = ("latest", "earliest", "latest_on_start", "earliest_on_start", "safe_latest")
MODES: dict[str, dict[str, Any]] = {
    "off": {},
    **{strategy: {INITIAL: strategy} for strategy in STRATEGIES},
    "nearest": NEAREST,
    "parallel": PARALLEL,
    "all": {INITIAL: "safe_latest", **NEAREST, **PARALLEL},
}
BASE: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 20,
    "fetch.queue.backoff.ms": 10,
    "log_level": 0,
}
CLASSIC: dict[str, Any] = {"heartbeat.interval.ms": 100, "session.timeout.ms": 6000}
COOPERATIVE: dict[str, Any] = {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"}
CONSUMER_PROTOCOL: dict[str, Any] = {"group.protocol": "consumer"}
"""The group protocol of KIP-848, which kproto and Kafka 4.0 and newer have."""


def differences(kafka: KafkaFixture, *, consumer_protocol: bool = False) -> list[str]:
    """Return where kproto's consumer in one of the modes differs from confluent-kafka's.

    All programs run at the same time: they wait most of the time.
    """
    topic = kafka.topic(2)
    for partition in (0, 1):
        kafka.write(topic, RECORDS, partition=partition)
    programs: dict[str, Callable[[Program], Outcomes]] = {
        "calls": outcomes,
        **{name: _numbered(behavior) for name, behavior in BEHAVIORS.items()},
    }
    runs = [(name, program, CLASSIC) for name, program in programs.items()]
    runs.append(("group, cooperative", _numbered(group), COOPERATIVE))
    if consumer_protocol:
        runs.append(("group, KIP-848", _numbered(group), CONSUMER_PROTOCOL))

    def run(program: Callable[[Program], Outcomes], consumer_class: Any, config: dict[str, Any]) -> Outcomes:
        connection = {"bootstrap.servers": kafka.bootstrap, "group.id": unique_name("group")}
        return program(Program(consumer_class, {**connection, **BASE, **config}, topic))

    with ThreadPoolExecutor(16) as pool:
        expected = {
            name: pool.submit(run, program, confluent_kafka.Consumer, protocol) for name, program, protocol in runs
        }
        found = {
            (mode, name): pool.submit(run, program, Consumer, {**protocol, **settings})
            for name, program, protocol in runs
            for mode, settings in MODES.items()
        }
        return [
            f"{mode}, {name}, {call}:\n  confluent {outcome}\n  kproto    {each.result().get(call)}"
            for (mode, name), each in found.items()
            for call, outcome in expected[name].result().items()
            if each.result().get(call) != outcome
        ]


def _numbered(behavior: Callable[[Program], list[Any]]) -> Callable[[Program], Outcomes]:
    return lambda program: {f"line {number}": each for number, each in enumerate(behavior(program))}


def main() -> int:
    found = differences(KafkaFixture(sys.argv[1]), consumer_protocol="--consumer-protocol" in sys.argv)
    print(confluent_kafka.version()[0], *found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
