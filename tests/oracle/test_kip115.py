"""KIP-115 while brokers start one by one and fail: real clusters and kproto respond the same to the same scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kproto_server.broker.broker import Broker
from tests.oracle.cluster import Cluster, real_kafka
from tests.oracle.kip115 import (
    BROKERS,
    FOUR,
    SETTINGS,
    FailingCluster,
    GrowingCluster,
    Step,
    ask_for_more,
    create_manually,
    grow,
    lose_afterwards,
    lose_before,
    lose_unnoticed,
)
from tests.oracle.kproto_cluster import KprotoCluster

pytestmark = pytest.mark.oracle

SCRIPTS = {"grow": grow, "created manually": create_manually}
FAILURES: dict[str, Callable[[FailingCluster], list[Step]]] = {
    "lost before and afterwards": lambda cluster: lose_before(cluster) + lose_afterwards(cluster),
    "lost unnoticed": lose_unnoticed,
    "more asked": ask_for_more,
}


@dataclass(frozen=True, slots=True)
class RealCluster:
    """A real cluster for the scripts."""

    cluster: Cluster

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    def start(self, node_id: int) -> None:
        self.cluster.start(node_id)

    def stop(self, node_id: int) -> None:
        self.cluster.stop(node_id)

    def kill(self, node_id: int) -> None:
        self.cluster.kill(node_id)

    def wait_noticed(self) -> None:
        """Do nothing: the script waits for the effect."""


@pytest.mark.parametrize(
    ("release", "script"),
    [("2.1.1", "created manually"), ("2.8.2", "grow"), ("4.4.0", "grow"), ("4.4.0", "created manually")],
)
def test_a_real_cluster_and_kproto_respond_the_same(release: str, script: str) -> None:
    """BA-50 to BA-53: Kafka with ZooKeeper before and after a change of Metadata, and KRaft."""
    run: Callable[[GrowingCluster], list[Step]] = SCRIPTS[script]
    with real_kafka(release, brokers=BROKERS, up=1, props=SETTINGS) as cluster:
        real = run(cluster)
    with Broker(kafka_version=release, brokers=BROKERS, started=1, settings=SETTINGS) as broker:
        tested = run(KprotoCluster(broker))

    assert tested == real


@pytest.mark.parametrize("script", FAILURES)
def test_a_real_cluster_and_kproto_respond_the_same_under_failures(script: str) -> None:
    release = "4.4.0"
    settings = FOUR if script == "more asked" else SETTINGS
    with real_kafka(release, brokers=BROKERS, props=settings) as cluster:
        real = FAILURES[script](RealCluster(cluster))
    with Broker(kafka_version=release, brokers=BROKERS, settings=settings, clock="manual") as broker:
        tested = FAILURES[script](KprotoCluster(broker))

    assert tested == real
