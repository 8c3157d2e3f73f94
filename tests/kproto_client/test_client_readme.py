"""The example of a deserializing consumer in the client's page."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from kproto_server import Broker
from tests.kproto_client.kafka_fixture import KafkaFixture

PAGE = Path(__file__).parents[2] / "kproto" / "client" / "README.md"


def test_the_example_of_a_deserializing_consumer_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
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
