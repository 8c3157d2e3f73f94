"""The example of a deserializing consumer in the client's page, and the oldest brokers that the page names."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kproto.client import Consumer
from kproto_server import Broker
from tests.kproto_client.kafka_fixture import KafkaFixture, read
from tests.kproto_client.parity import MODES

PAGE = Path(__file__).parents[2] / "kproto" / "client" / "README.md"


def test_the_example_of_a_deserializing_consumer_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with Broker.running() as broker:
        kafka = KafkaFixture(broker.bootstrap_servers)
        kafka.create("orders")
        kafka.commit("billing", "orders", 0)
        kafka.producer.produce("orders", "order 1041")
        kafka.producer.flush()
        program = tmp_path / "example.py"
        program.write_text(example.replace("127.0.0.1:9092", broker.bootstrap_servers))
        runpy.run_path(str(program))
    assert capsys.readouterr().out == "order 1041\n"


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "all"])
def test_the_oldest_broker_of_each_setting(mode: str) -> None:
    """Records are read from a committed offset, and those written after the first assignment."""
    oldest = "0.10.1" if mode == "safe_latest" else "0.10.0"
    with Broker.running(kafka_version=oldest, settings={"group.initial.rebalance.delay.ms": 0}) as broker:
        kafka = KafkaFixture.__new__(KafkaFixture)
        kafka.bootstrap = broker.bootstrap_servers
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        for _ in range(3):
            producer.produce("orders", b"x")
        producer.flush(10)
        kafka.commit("billing", "orders", 1)
        with Consumer({**kafka.config("billing"), **MODES[mode]}) as consumer:
            consumer.subscribe(["orders"])
            assert read(consumer, 2) == [1, 2]
            producer.produce("orders", b"y")
            producer.flush(10)
            assert read(consumer, 1) == [3]
