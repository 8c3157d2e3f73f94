"""KIP-115 while brokers come up one by one: real clusters and ours give the same answers to the same script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kproto_server.broker.broker import Broker
from tests.oracle.cluster import real_kafka
from tests.oracle.kip115 import BROKERS, SETTINGS, GrowingCluster, Step, grow, make_by_hand

pytestmark = pytest.mark.oracle

SCRIPTS = {"grow": grow, "made by hand": make_by_hand}


@dataclass(frozen=True, slots=True)
class OurCluster:
    """A broker in process, as a cluster of the script."""

    broker: Broker

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap_servers

    def start(self, node_id: int) -> None:
        self.broker.start_node(node_id)


@pytest.mark.parametrize(
    ("release", "script"),
    [("2.1.1", "grow"), ("2.1.1", "made by hand"), ("2.8.2", "grow"), ("4.4.0", "grow"), ("4.4.0", "made by hand")],
)
def test_a_real_cluster_and_ours_answer_alike(release: str, script: str) -> None:
    """BA-50 to BA-53: Kafka with ZooKeeper before and after Metadata changed, and KRaft."""
    run: Callable[[GrowingCluster], list[Step]] = SCRIPTS[script]
    with real_kafka(release, brokers=BROKERS, up=1, props=SETTINGS) as cluster:
        theirs = run(cluster)
    with Broker(kafka_version=release, brokers=BROKERS, started=1, settings=SETTINGS) as broker:
        ours = run(OurCluster(broker))

    assert ours == theirs
