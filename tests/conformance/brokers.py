"""The brokers of the table of brokers: real releases of Kafka, kproto as each, kfake, and librdkafka's mock broker."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import confluent_kafka

from bench.peers.go import BENCH, build
from kproto_server.broker.broker import Broker
from kproto_server.conformance.broker_expectations import expectations
from tests.oracle.cluster import real_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager


class BrokerOfTable(NamedTuple):
    """A broker that the cases of `kproto conform broker` are sent to."""

    name: str
    release: str
    """The release that it is compared with."""
    running: Callable[[], AbstractContextManager[str]]
    """Runs it, and yields its address."""


@contextmanager
def _real(release: str) -> Iterator[str]:
    with real_kafka(release) as cluster:
        yield cluster.addresses[0]


@contextmanager
def _kproto(release: str) -> Iterator[str]:
    with Broker.running(kafka_version=release) as broker:
        yield broker.bootstrap_servers


@contextmanager
def _process(command: Sequence[str]) -> Iterator[str]:
    """Run a process that prints the broker's address."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def _kfake() -> BrokerOfTable:
    version = re.search(r"pkg/kfake (\S+)", (BENCH / "kfake/go.mod").read_text())
    assert version
    return BrokerOfTable(f"kfake {version[1]}", "4.4.0", lambda: _process([str(build("kfake"))]))


BROKERS = {
    broker.name: broker
    for broker in (
        *(BrokerOfTable(f"Apache Kafka {each}", each, lambda each=each: _real(each)) for each in expectations()),  # type: ignore[misc]
        *(BrokerOfTable(f"kproto as {each}", each, lambda each=each: _kproto(each)) for each in expectations()),  # type: ignore[misc]
        _kfake(),
        BrokerOfTable(
            f"librdkafka {confluent_kafka.libversion()[0]} mock",
            "3.9.2",
            lambda: _process([sys.executable, "-m", "tests.conformance.mock_broker"]),
        ),
    )
}
"""By name."""
