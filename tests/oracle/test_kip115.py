"""KIP-115 while brokers start one by one: real clusters and kproto respond the same to the same script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kproto_server.broker.broker import Broker
from tests.oracle.cluster import real_kafka
from tests.oracle.kip115 import BROKERS, SETTINGS, GrowingCluster, Step, create_manually, grow

pytestmark = pytest.mark.oracle

SCRIPTS = {"grow": grow, "created manually": create_manually}


@dataclass(frozen=True, slots=True)
class KprotoCluster:
    """An in-process kproto cluster for the script."""

    broker: Broker

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap_servers

    def start(self, node_id: int) -> None:
        self.broker.start_node(node_id)


@pytest.mark.parametrize(
    ("release", "script"),
    [
        ("2.1.1", "grow"),
        ("2.1.1", "created manually"),
        ("2.8.2", "grow"),
        ("4.4.0", "grow"),
        ("4.4.0", "created manually"),
    ],
)
def test_a_real_cluster_and_kproto_respond_the_same(release: str, script: str) -> None:
    """BA-50 to BA-53: Kafka with ZooKeeper before and after a change of Metadata, and KRaft."""
    run: Callable[[GrowingCluster], list[Step]] = SCRIPTS[script]
    with real_kafka(release, brokers=BROKERS, up=1, props=SETTINGS) as cluster:
        real = run(cluster)
    with Broker(kafka_version=release, brokers=BROKERS, started=1, settings=SETTINGS) as broker:
        tested = run(KprotoCluster(broker))

    assert tested == real
