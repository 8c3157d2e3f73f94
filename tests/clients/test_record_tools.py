"""Kafka's own tools print the same about records and changed configs against kproto and a real broker."""

from collections.abc import Iterator

import pytest
from kafka import KafkaProducer

from tests.clients import admin
from tests.clients.tools import CONFIGS, CONSOLE_CONSUMER, OFFSETS, Pair, rows, running_tools
from tests.oracle.cluster import NEWEST

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def pair(tested_and_real: tuple[str, str]) -> Iterator[Pair]:
    with running_tools(NEWEST) as tools:
        yield Pair(tools, *tested_and_real)


def fill(pair: Pair, topic: str, count: int) -> str:
    for address in pair.addresses:
        admin.create_topic(address, topic, 1, {"retention.ms": "-1"})
        producer = KafkaProducer(bootstrap_servers=address)
        for number in range(count):
            producer.send(topic, b"value %d" % number, b"key %d" % number, timestamp_ms=1_700_000_000_000 + number)
        producer.flush()
        producer.close()
    return topic


def test_the_console_consumer_prints_records(pair: Pair) -> None:
    topic = fill(pair, "printed", 5)
    wanted = ("--partition", "0", "--offset", "2", "--max-messages", "3", "--timeout-ms", "20000")

    printed = pair.same(CONSOLE_CONSUMER, "--topic", topic, *wanted, "--formatter-property", "print.key=true")

    assert printed.out == "key 2\tvalue 2\nkey 3\tvalue 3\nkey 4\tvalue 4\n"


@pytest.mark.parametrize("time", ["-1", "-2", "-3", "-4", "-5", "1700000000003", "1700000000009"])
def test_offsets_of_a_topic_with_records(pair: Pair, time: str) -> None:
    topic = fill(pair, f"timed.{time}", 5)

    printed = pair.same(OFFSETS, "--topic", topic, "--time", time)

    offset = {"-1": "5", "-2": "0", "-3": "4", "-4": "0", "1700000000003": "3"}.get(time)
    assert rows(printed.out) == ([] if offset is None else [f"{topic}:0:{offset}"])


def test_configs_of_a_topic_change(pair: Pair) -> None:
    topic = pair.create_topic("changed", 1)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)

    assert pair.same(CONFIGS, *of_topic, "--alter", "--add-config", "retention.ms=5000").exit_code == 0
    assert "retention.ms=5000" in pair.same(CONFIGS, *of_topic, "--describe").out
    assert pair.same(CONFIGS, *of_topic, "--alter", "--add-config", "no.such=1").exit_code == 1
    assert pair.same(CONFIGS, *of_topic, "--alter", "--delete-config", "retention.ms").exit_code == 0
    assert "retention.ms" not in pair.same(CONFIGS, *of_topic, "--describe").out
