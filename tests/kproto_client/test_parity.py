"""kproto's Consumer behaves as confluent-kafka's, call by call, in each mode; also with the oldest confluent-kafka."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import confluent_kafka
import pytest

from kproto.client import Consumer
from tests.kproto_client.kafka_fixture import KafkaFixture
from tests.kproto_client.parity import differences
from tests.kproto_client.parity_behaviors import BEHAVIORS
from tests.kproto_client.parity_calls import Program, forms
from tests.requirements import missing

ROOT = Path(__file__).parents[2]
MINIMUM = re.search(r'client = \["confluent-kafka>=([\d.]+)"\]', (ROOT / "pyproject.toml").read_text())


def test_each_call_has_the_same_outcome(kafka: KafkaFixture) -> None:
    assert "\n".join(differences(kafka, consumer_protocol=True)) == ""


def test_each_call_has_the_same_outcome_with_the_oldest_confluent_kafka(kafka: KafkaFixture, tmp_path: Path) -> None:
    assert MINIMUM is not None
    release = f"{MINIMUM[1]}.0"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    installed = subprocess.run(
        [*pip, "--target", str(tmp_path), f"confluent-kafka=={release}"], capture_output=True, text=True, check=False
    )
    if installed.returncode != 0:
        missing(f"needs confluent-kafka {release} from the package index: {installed.stderr[-300:]}")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, ROOT, ROOT / "server")))}
    for module, part, output in ((".parity", [], f"{release}\n"), ("", ["metadata"], "0 failed\n")):
        program = [sys.executable, "-m", f"tests.kproto_client{module}", kafka.bootstrap, *part]
        ended = subprocess.run(
            program, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
        )
        assert ended.stdout.endswith(output), ended.stdout + ended.stderr
        assert ended.returncode == 0, ended.stderr


def test_each_method_is_called() -> None:
    program = Program(Consumer, {}, "topic")
    called = {name for name, _ in forms(program, None, None)}
    behaviors = "".join(map(inspect.getsource, BEHAVIORS.values()))
    called |= set(re.findall(r"consumer\.(\w+)\(", behaviors))
    methods = {name for name in dir(confluent_kafka.Consumer) if not name.startswith("_")}
    assert methods <= called


@pytest.mark.parametrize("name", sorted({"__enter__", "__exit__"} & set(dir(confluent_kafka.Consumer))))
def test_context_managers_return_the_same(kafka: KafkaFixture, name: str) -> None:
    for consumer_class in (confluent_kafka.Consumer, Consumer):
        consumer = consumer_class(kafka.config("group"))
        with consumer as entered:
            assert entered is consumer
        assert consumer.__exit__(None, None, None) is None
