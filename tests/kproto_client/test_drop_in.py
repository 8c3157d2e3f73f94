"""A program does the same with our Consumer as with confluent-kafka's (CK-5, CK-50)."""

from typing import Any

import confluent_kafka
import pytest

from kproto.client import ConfigError, Consumer
from tests.kproto_client import drop_in
from tests.kproto_client.kafka_side import KafkaSide, name

PLAIN = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
FEATURES: dict[str, dict[str, Any]] = {
    "off": {},
    "said to be off": {"enable.parallel.rebalance": False, "auto.offset.reset.on.invalid.offset": "none"},
    "KIP-842": {
        "auto.offset.reset.on.no.initial.offset": "earliest",
        "auto.offset.reset.on.invalid.offset": "nearest",
    },
    "KIP-333": {"enable.parallel.rebalance": True},
}


@pytest.mark.parametrize("feature", FEATURES)
def test_the_same_program_does_the_same(kafka: KafkaSide, feature: str) -> None:
    """CK-5, CK-50: with the features off, and with those on that have nothing to do here."""
    topic = kafka.topic(2)
    for partition in (0, 1):
        kafka.write(topic, 10, partition=partition)
    config = {**kafka.config(name("group")), **PLAIN, "enable.partition.eof": False}
    theirs = drop_in.run(confluent_kafka.Consumer, config, topic)
    ours = drop_in.run(Consumer, {**config, "group.id": name("group"), **FEATURES[feature]}, topic)
    assert ours == theirs


def test_it_is_a_confluent_consumer_and_takes_its_configurations(kafka: KafkaSide) -> None:
    config = kafka.config(name("group"))
    for consumer in (Consumer(config), Consumer(config, **PLAIN), Consumer(**config)):
        assert isinstance(consumer, confluent_kafka.Consumer)
        consumer.close()
    nested = Consumer({**config, "default.topic.config": {"auto.offset.reset": "earliest"}})
    nested.close()


@pytest.mark.parametrize(
    "setting", ["auto.offset.reset.on.no.initial.offset", "auto.offset.reset.on.invalid.offset", "auto.offset.reset"]
)
def test_what_a_setting_cannot_be_fails_at_construction(setting: str) -> None:
    """CK-4."""
    with pytest.raises(ConfigError, match=setting):
        Consumer({"group.id": "g", setting: "sometimes"})


def test_a_setting_that_nobody_knows_fails_as_before() -> None:
    """CK-3: among them the draft's name of on.invalid.offset."""
    with pytest.raises(confluent_kafka.KafkaException, match=r"auto\.offset\.reset\.strategy"):
        Consumer({"group.id": "g", "auto.offset.reset.strategy.offset-out-of-range": "nearest"})
