"""`close` while an assignment or a revocation waits for its callback, which librdkafka then runs within `close`.

The first `assign` there lets librdkafka terminate its consumer group, and a further call at that moment waits forever.
So kproto makes none. While a revocation waits, librdkafka leaves the group before its last commit. So kproto commits
before.
"""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import ConsumerGroupState, TopicPartition

from kproto.client import Consumer
from kproto.client.confluent_methods import ConfluentMethods
from kproto_server import Broker
from tests.kproto_client.catch_up_cases import behind
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture, read, unique_name
from tests.kproto_client.parity import MODES
from tests.kproto_client.pending_revocation import wait_for_revocation
from tests.waiting import wait_until

CALLS = ("assign", "incremental_assign", "incremental_unassign", "unassign", "pause", "resume")


def is_stable(kafka: KafkaFixture, group: str) -> bool:
    (future,) = kafka.admin.describe_consumer_groups([group]).values()
    return bool(future.result(LIMIT_S).state == ConsumerGroupState.STABLE)


@pytest.mark.parametrize("user_assigns", [False, True])
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_an_assignment_within_close_is_one_call(
    kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch, strategy: str, user_assigns: bool
) -> None:
    topic = kafka.log()
    calls: list[str] = []
    find = ConfluentMethods.__getattr__

    def noted(self: ConfluentMethods, name: str) -> Any:
        calls.extend([name] if name in CALLS else [])
        return find(self, name)

    monkeypatch.setattr(ConfluentMethods, "__getattr__", noted)
    assigned: list[TopicPartition] = []

    def on_assign(consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        assigned.extend(partitions)
        if user_assigns and strategy == "range":
            consumer.assign(partitions)
        elif user_assigns:
            consumer.incremental_assign(partitions)

    def assigned_within_close() -> bool:
        """The response of SyncGroup may come too late."""
        group = unique_name("group")
        kafka.commit(group, topic, 200)
        consumer = Consumer(kafka.config(group, enable_parallel_rebalance=True, partition_assignment_strategy=strategy))
        consumer.subscribe([topic], on_assign=on_assign)
        wait_until(lambda: is_stable(kafka, group), "an assignment")
        consumer.close()
        return bool(assigned)

    wait_until(assigned_within_close, "an assignment within close")
    assert calls == []


@pytest.mark.parametrize("mode", ["safe_latest", "parallel"])
def test_close_commits_while_a_revocation_waits(kafka: KafkaFixture, broker: Broker, mode: str) -> None:
    topic, group = behind(kafka, 0, 5)
    with Consumer({**kafka.config(group, auto_commit_interval_ms=60_000), **MODES[mode]}) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 5) == list(range(5))
        wait_for_revocation(broker, group)
    assert kafka.committed(group, topic) == 5


@pytest.mark.parametrize("callback", ["on_revoke", "on_commit"])
@pytest.mark.parametrize("mode", ["safe_latest", "parallel"])
def test_close_is_complete_although_a_callback_raises(kafka: KafkaFixture, mode: str, callback: str) -> None:
    """As of confluent-kafka, whose second `close` does nothing."""

    def fail(*_: object) -> None:
        if is_closing:
            raise ValueError(callback)

    topic, group = behind(kafka, 0, 5)
    is_closing = False
    callbacks = {"on_commit": fail} if callback == "on_commit" else {}
    consumer = Consumer({**kafka.config(group, auto_commit_interval_ms=60_000, **callbacks), **MODES[mode]})
    consumer.subscribe([topic], **({} if callbacks else {"on_revoke": fail}))
    assert read(consumer, 2) == [0, 1]
    is_closing = True
    with pytest.raises(ValueError, match=callback):
        consumer.close()
    assert consumer._delegate is not None
    assert consumer._delegate.is_closed
    assert consumer._delegate._parallel is None or not consumer._delegate._parallel.consumer2_is_open
    consumer.close()
