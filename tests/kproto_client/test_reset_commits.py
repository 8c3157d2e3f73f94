"""The commit of a reset position, whose result librdkafka may drop, and the commits that follow it."""

from typing import Any

import pytest
from confluent_kafka import TopicPartition

from kproto.client import pending_resets
from tests.kproto_client.decision_tables import END
from tests.kproto_client.kafka_fixture import KafkaFixture, read, start_position, unique_name
from tests.kproto_client.reset_cases import resets
from tests.waiting import wait_until

STRATEGIES = {"safe_latest": "latest", "latest_on_start": "earliest"}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("automatic", [True, False])
def test_a_repeated_commit_of_a_reset_overwrites_no_later_commit(
    kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch, strategy: str, automatic: bool
) -> None:
    """CK-15: the committed offset never goes back."""
    monkeypatch.setattr(pending_resets, "COMMIT_LIMIT_S", 0.3)
    topic, group = kafka.log(), unique_name("group")
    settings = {**resets(strategy, STRATEGIES[strategy]), "enable_auto_commit": automatic}
    with kafka.consumer(group, **settings) as consumer:
        delegate = consumer._delegate
        assert delegate is not None
        dropped: list[TopicPartition] = []

        def drop_first(error: Any, partitions: list[TopicPartition]) -> None:
            if dropped:
                type(delegate).on_commit(delegate, error, partitions)
            dropped.extend(partitions)

        monkeypatch.setattr(delegate, "on_commit", drop_first)
        consumer.subscribe([topic])
        assert start_position(consumer) == END
        wait_until(lambda: consumer.poll(0) is None and bool(dropped), "the result of the first commit")
        kafka.write(topic, 2)
        read(consumer, 2)
        if not automatic:
            consumer.commit(asynchronous=False)
        wait_until(lambda: consumer.poll(0.02) is None and kafka.committed(group, topic) == END + 2, "a commit")
        for _ in range(10):
            consumer.poll(0.05)
        assert kafka.committed(group, topic) == END + 2
    assert kafka.committed(group, topic) == END + 2
