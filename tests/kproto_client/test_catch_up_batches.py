"""`consume` while partitions catch up: what consumer 2 has fetched goes to the user without a stay in buffer 2."""

import random
import time
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from kproto.client import delivery
from kproto.client.parallel_catch_up import ParallelCatchUp
from tests.kproto_client.catch_up_cases import ON, behind, parallel_of
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture, read
from tests.kproto_client.python_calls import calls_of_consume

COUNT = 100
CALLS_MAX = 15
"""Python functions that one `consume` runs: 12 for one partition. A pass over all sources runs 48 or more."""


def test_a_batch_costs_few_calls_of_functions(kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """CK-92: the cost of a call is shared by its records only."""
    monkeypatch.setattr(delivery, "CONSUMER1_POLL_INTERVAL_S", LIMIT_S)
    topic, group = behind(kafka, 0, 3000, partitions=2)
    with kafka.consumer(group, **ON, queued_min_messages=100_000) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        fewest = min(calls_of_consume(consumer, COUNT) for _ in range(40))
        assert fewest <= CALLS_MAX
        assert parallel_of(consumer).catch_ups


@pytest.mark.parametrize("seed", range(3))
def test_any_calls_deliver_in_order(kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """CK-60, CK-63: poll, consume of few and of many records, and pause, in any order."""
    passed_through = 0
    pass_through = ParallelCatchUp.pass_through

    def counted(self: ParallelCatchUp, count: int) -> list[Any]:
        nonlocal passed_through
        passed_through += 1
        return pass_through(self, count)

    monkeypatch.setattr(ParallelCatchUp, "pass_through", counted)
    rng = random.Random(seed)  # noqa: S311 - reproducible
    end, added = 4000, 10
    topic, group = behind(kafka, 0, end, partitions=3)
    following = dict.fromkeys(range(3), 0)
    """The next expected offset of each partition."""
    with kafka.consumer(group, **ON, enable_partition_eof=False) as consumer:
        consumer.subscribe([topic])
        limit = time.monotonic() + LIMIT_S
        while any(each < end + added for each in following.values()):
            assert time.monotonic() < limit, following
            is_first = not any(following.values())
            choice = 0.0 if is_first else rng.random()
            paused = [TopicPartition(topic, rng.randrange(3))] if choice > 0.9 else []
            if paused:
                consumer.pause(paused)
            if choice < 0.3:
                messages = [each for _ in range(1 if is_first else rng.randrange(20)) if (each := consumer.poll(0.01))]
            else:
                messages = consumer.consume(rng.choice((1, 7, 100, 500, 501, 2000)), 0.01)
            for message in messages:
                partition, offset = message.partition(), message.offset()
                assert message.error() is None
                assert partition is not None
                assert partition not in [each.partition for each in paused]
                assert following[partition] == offset
                following[partition] += 1
            if paused:
                consumer.resume(paused)
            if is_first and messages:
                for partition in range(3):
                    kafka.write(topic, added, partition=partition)
        assert passed_through
