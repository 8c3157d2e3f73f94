"""Share consumers of Java's newest client library, of franz-go and of librdkafka."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kproto_server.broker.broker import Broker
from tests.clients.scenarios import built
from tests.oracle.cluster import NEWEST, kafka, real_kafka
from tests.oracle.java import compiled, java_command
from tests.share_groups.transcripts import REAL_SETTINGS, SETTINGS

SOURCE = Path(__file__).parent / "java" / "ShareClient.java"
LIMIT_S = 60


def java() -> list[str]:
    classpath = kafka("clientpath", NEWEST)
    return java_command(compiled(SOURCE, classpath, 11), classpath, "ShareClient")


def librdkafka() -> list[str]:
    return [sys.executable, "-m", "tests.share_groups.confluent_members"]


CLIENTS = [
    pytest.param(java, marks=pytest.mark.oracle, id="java"),
    pytest.param(built.go("share"), marks=pytest.mark.oracle, id="franz-go"),
    pytest.param(librdkafka, id="librdkafka"),
]


def check(command: list[str], bootstrap: str) -> None:
    """Run two members; records are accepted, released, rejected, and given to the other member."""
    done = subprocess.run([*command, bootstrap], capture_output=True, encoding="utf-8", timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["done"] == {str(number): 1 + number % 2 for number in range(10)}
    assert list(found["second"]) == ["last"]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("version", ["4.2", "latest"])
def test_two_members_share_records(client: Callable[[], list[str]], version: str) -> None:
    settings = {"group.share.min.heartbeat.interval.ms": "1000", "group.share.heartbeat.interval.ms": "1000"}
    command = client()
    with Broker.running(kafka_version=version, settings=settings) as broker:
        check(command, broker.bootstrap_servers)


@pytest.mark.oracle
@pytest.mark.parametrize("client", CLIENTS)
def test_two_members_share_records_of_a_real_broker(client: Callable[[], list[str]]) -> None:
    with real_kafka(NEWEST, props=SETTINGS | REAL_SETTINGS) as broker:
        check(client(), broker.bootstrap)
