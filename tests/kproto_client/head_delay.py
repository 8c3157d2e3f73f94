"""How early new records are seen during a catch-up: `python -m tests.kproto_client.head_delay [RELEASE]`.

A group is behind by `BEHIND` records, each with a key of its own, and its consumer takes `PROCESSING_S` for a record. A
producer writes `NEW_PER_S` records a second with further keys meanwhile. The table has the time from the write of such
a record to its delivery, for a plain consumer and for both orders of the parallel catch-up. Without a release, the
broker is kproto.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka

from kproto.client import Consumer
from kproto_server import Broker
from tests.kproto_client.kafka_fixture import KafkaFixture, unique_name
from tests.oracle.cluster import real_kafka

BEHIND = 10_000
PROCESSING_S = 0.001
NEW_PER_S = 20
MODES: dict[str, dict[str, Any] | None] = {
    "confluent-kafka": None,
    "order by partition": {"enable.parallel.rebalance": True},
    "order by key": {"enable.parallel.rebalance": True, "parallel.rebalance.order": "key"},
}


def delays_s(kafka: KafkaFixture, settings: dict[str, Any] | None) -> tuple[list[float], float]:
    """Return the delays of the new records, and the time until the consumer has caught up."""
    topic, group = kafka.topic(), unique_name("group")
    kafka.write(topic, BEHIND, keys=[b"%d" % number for number in range(BEHIND)])
    kafka.commit(group, topic, 0)
    config = {"bootstrap.servers": kafka.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(config) if settings is None else Consumer({**config, **settings})
    consumer.subscribe([topic])
    written: dict[int, float] = {}
    delays: list[float] = []
    with writing(kafka, topic, written) as caught_up:
        old, started = 0, 0.0
        while old < BEHIND or len(delays) < len(written):
            message = consumer.poll(1.0)
            if message is None:
                continue
            assert message.error() is None
            offset, now = message.offset(), time.monotonic()
            assert offset is not None
            started = started or now
            if offset < BEHIND:
                old += 1
            else:
                delays.append(now - written[int(message.value() or b"")])
            time.sleep(PROCESSING_S)
            if old == BEHIND:
                caught_up.set()
    took_s = time.monotonic() - started
    consumer.close()
    return delays, took_s


@contextmanager
def writing(kafka: KafkaFixture, topic: str, written: dict[int, float]) -> Iterator[threading.Event]:
    """Write new records in a thread until the yielded event is set; note when each is written."""
    ends = threading.Event()

    def write() -> None:
        number = 0
        while not ends.wait(1 / NEW_PER_S):
            written[number] = time.monotonic()
            kafka.producer.produce(topic, b"%d" % number, b"new %d" % number, partition=0)
            kafka.producer.poll(0)
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield ends
    finally:
        ends.set()
        thread.join()


def main() -> None:
    if sys.argv[1:]:
        with real_kafka(sys.argv[1]) as cluster:
            measure(KafkaFixture(cluster.bootstrap))
    else:
        with Broker.running() as broker:
            measure(KafkaFixture(broker.bootstrap_servers))


def measure(kafka: KafkaFixture) -> None:
    print("| Consumer | median delay | of 95 % at most | caught up after |\n|---|---|---|---|")
    for name, settings in MODES.items():
        delays, took_s = delays_s(kafka, settings)
        most = statistics.quantiles(delays, n=20)[-1]
        print(f"| {name} | {statistics.median(delays):.2f} s | {most:.2f} s | {took_s:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
