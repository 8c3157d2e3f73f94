"""A program behaves the same with kproto's Consumer as with confluent-kafka's (CK-5, CK-50)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import Message, TopicPartition

from kproto.client import ConfigError, Consumer
from tests.kproto_client import drop_in
from tests.kproto_client.catch_up_cases import behind
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture, read, unique_name
from tests.kproto_client.python_calls import calls_of_consume
from tests.waiting import wait_until

PLAIN = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
FEATURES: dict[str, dict[str, Any]] = {
    "off": {},
    "explicitly off": {"enable.parallel.rebalance": False, "auto.offset.reset.on.invalid.offset": "none"},
    "KIP-842": {"auto.offset.reset.on.no.initial.offset": "earliest", "auto.offset.reset.on.invalid.offset": "nearest"},
    "KIP-333": {"enable.parallel.rebalance": True},
}
ALL = {"auto.offset.reset.on.no.initial.offset": "earliest_on_start", **FEATURES["KIP-333"]}


@pytest.mark.parametrize("feature", FEATURES)
def test_the_same_program_has_the_same_trace(kafka: KafkaFixture, feature: str) -> None:
    """CK-5, CK-50: with the settings off, and with settings that have no effect on this program."""
    topic = kafka.topic(2)
    for partition in (0, 1):
        kafka.write(topic, 10, partition=partition)
    config = {**kafka.config(unique_name("group")), **PLAIN, "enable.partition.eof": False}
    confluent = drop_in.run(confluent_kafka.Consumer, config, topic)
    kproto = drop_in.run(Consumer, {**config, "group.id": unique_name("group"), **FEATURES[feature]}, topic)
    assert kproto == confluent


def test_without_settings_poll_and_consume_are_confluents(kafka: KafkaFixture) -> None:
    with kafka.consumer(unique_name("group")) as consumer:
        assert type(consumer).poll is confluent_kafka.Consumer.poll
        assert type(consumer).consume is confluent_kafka.Consumer.consume


def test_with_settings_consume_is_one_function_around_confluents(kafka: KafkaFixture) -> None:
    """While no partition needs anything else."""
    topic = kafka.topic(2)
    for partition in (0, 1):
        kafka.write(topic, 1500, partition=partition)
    config = {
        **kafka.config(unique_name("group"), queued_min_messages=100_000),
        **ALL,
        "enable.partition.eof": False,
        "commit.reset.position": False,
    }
    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        assert min(calls_of_consume(consumer, 100) for _ in range(25)) == 1


def test_consumer_is_a_confluent_consumer_and_accepts_its_configurations(kafka: KafkaFixture) -> None:
    config = kafka.config(unique_name("group"))
    for consumer in (Consumer(config), Consumer(config, **PLAIN), Consumer(**config)):
        assert isinstance(consumer, confluent_kafka.Consumer)
        consumer.close()
    nested = Consumer({**config, "default.topic.config": {"auto.offset.reset": "earliest"}})
    nested.close()


@pytest.mark.parametrize(
    "setting", ["auto.offset.reset.on.no.initial.offset", "auto.offset.reset.on.invalid.offset", "auto.offset.reset"]
)
def test_an_invalid_value_is_rejected_at_construction(setting: str) -> None:
    """CK-4."""
    with pytest.raises(ConfigError, match=setting):
        Consumer({"group.id": "g", setting: "sometimes"})


def test_an_unknown_setting_is_rejected_by_librdkafka() -> None:
    """CK-3: for example the name that a draft of KIP-842 had for on.invalid.offset."""
    with pytest.raises(confluent_kafka.KafkaException, match=r"auto\.offset\.reset\.strategy"):
        Consumer({"group.id": "g", "auto.offset.reset.strategy.offset-out-of-range": "nearest"})


@pytest.mark.parametrize("feature", ["KIP-842", "KIP-333"])
def test_consume_returns_what_was_read_before_the_exception_of_a_callback(
    kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch, feature: str
) -> None:
    topic = kafka.topic()
    kafka.write(topic, 1)
    with Consumer(
        {**kafka.config(unique_name("group")), **FEATURES[feature], "enable.partition.eof": False}
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert consumer._delivery is not None
        next_messages, passes = consumer._delivery._next_messages, list[list[Message]]()

        def raise_after_messages(*args: Any, **kwargs: Any) -> list[Message]:
            if passes and passes[-1]:
                passes.append([])
                raise ValueError("of a callback")
            passes.append(next_messages(*args, **kwargs))
            return passes[-1]

        monkeypatch.setattr(consumer._delivery, "_next_messages", raise_after_messages)
        assert [each.offset() for each in consumer.consume(2, LIMIT_S)] == [0]
        with pytest.raises(ValueError, match="of a callback"):
            consumer.poll(1.0)
        assert consumer.poll(0.01) is None


@pytest.mark.parametrize("settings", [{"auto.offset.reset.on.no.initial.offset": "safe_latest"}, FEATURES["KIP-333"]])
def test_consume_commits_no_record_that_it_has_not_returned(kafka: KafkaFixture, settings: dict[str, Any]) -> None:
    """CK-73, CK-75: while it waits for further records, although commits are due and a catch-up ends."""
    topic, group = behind(kafka, 2, 5)
    config = {**kafka.config(group, auto_commit_interval_ms=50), **settings, "enable.partition.eof": False}
    with Consumer(config) as consumer, ThreadPoolExecutor() as threads:
        consumer.subscribe([topic])
        consumed, offsets = threads.submit(consumer.consume, 10, 2.0), set()
        while not consumed.done():
            offsets.add(kafka.committed(group, topic))
        assert [each.offset() for each in consumed.result()] == [2, 3, 4]
        assert offsets == {2}
        wait_until(lambda: (consumer.poll(0.1), kafka.committed(group, topic) == 5)[1], "a commit")
