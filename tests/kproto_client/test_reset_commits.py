"""The commit of a reset position, whose result librdkafka may drop, and the commits that follow it."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_repeated_commit_of_a_reset_leaves_what_others_have_committed(
    kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    """CK-15: a member commits the resets of all partitions at a group start, also those that it does not own."""
    monkeypatch.setattr(pending_resets, "COMMIT_LIMIT_S", 0.3)
    topic, group = kafka.log(partitions=2), unique_name("group")
    kafka.write(topic, 20, partition=1)
    with kafka.consumer(group, **resets(strategy, STRATEGIES[strategy])) as consumer:
        delegate = consumer._delegate
        assert delegate is not None
        requested: list[dict[int, int]] = []
        results_are_dropped = True

        def on_commit(error: Any, partitions: list[TopicPartition]) -> None:
            requested.append({each.partition: each.offset for each in partitions})
            if not results_are_dropped:
                type(delegate).on_commit(delegate, error, partitions)

        def is_requested() -> bool:
            consumer.poll(0.02)
            return bool(requested)

        monkeypatch.setattr(delegate, "on_commit", on_commit)
        consumer.assign([TopicPartition(topic, 0)])
        wait_until(is_requested, "the first commit")
        assert requested[0].keys() == {0, 1}
        later = requested[0][1] + 1
        kafka.commit(group, topic, later, partition=1)
        requested.clear()
        results_are_dropped = False
        wait_until(is_requested, "the repeated commit")
        assert requested[0] == {0: END}
        assert kafka.committed(group, topic, 1) == later


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_revocation_before_the_commit_of_resets_leaves_them_complete(
    kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    """CK-14, CK-15: otherwise the next owner takes the revoked partition for one that was added later."""
    topic, group = kafka.log(partitions=2), unique_name("group")
    kafka.write(topic, 20, partition=1)
    with kafka.consumer(group, **resets(strategy, STRATEGIES[strategy])) as consumer:
        delegate = consumer._delegate
        assert delegate is not None
        pending = delegate._pending
        own, refusals = pending._consumer, list[object]()

        def refuse(**arguments: Any) -> None:
            refusals.append(arguments)
            raise KafkaException(KafkaError(KafkaError.REBALANCE_IN_PROGRESS))

        monkeypatch.setattr(pending, "_consumer", SimpleNamespace(commit=refuse))
        consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        wait_until(lambda: (consumer.poll(0), bool(refusals))[1], "the first commit")
        delegate.revoked([(topic, 1)], lost=True)
        monkeypatch.setattr(pending, "_consumer", own)

        def are_committed() -> bool:
            consumer.poll(0.05)
            return [kafka.committed(group, topic, each) for each in (0, 1)] == [END, 20]

        wait_until(are_committed, "both resets")
