"""A full disk: real clusters and kproto respond the same, with the broker as the leader and as a follower.

Method: the limit of file sizes of the broker's process makes each write fail, as on a full disk. Clusters of 2.8.2
gave these results, too; only the newest release is started, as each run takes 15 seconds.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kproto_server.broker.broker import Broker
from tests.oracle import cluster as clusters
from tests.oracle.cluster import real_kafka
from tests.oracle.disks import CLOSED, FOLLOWER, LEADER, fill
from tests.requirements import need

pytestmark = pytest.mark.oracle


@dataclass(frozen=True, slots=True)
class RealCluster:
    """A real cluster for the script."""

    cluster: clusters.Cluster

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.cluster.addresses

    def fill_disk(self, node_id: int) -> None:
        properties = str(self.cluster.folder / f"node-{node_id}" / "server.properties")
        for command in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = command.read_bytes().split(b"\0")
            except OSError:  # it has ended
                continue
            if b"kafka.Kafka" in words and properties.encode() in words:
                prlimit = need("prlimit", install="util-linux")
                subprocess.run([prlimit, "--pid", command.parent.name, "--fsize=1"], check=True)


@dataclass(frozen=True, slots=True)
class KprotoCluster:
    """An in-process kproto cluster for the script."""

    broker: Broker

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(self.broker.bootstrap_servers.split(","))

    def fill_disk(self, node_id: int) -> None:
        self.broker.cluster.disk(node_id, full=True)


@pytest.mark.parametrize(("victim", "expected"), [(LEADER, [0, 56, True, False, 0]), (FOLLOWER, [0, 7, True, True, 0])])
def test_a_real_cluster_and_kproto_respond_the_same(victim: int, expected: list[object]) -> None:
    release = "4.4.0"
    with Broker.running(kafka_version=release, brokers=3, clock="scaled:4") as broker:
        assert fill(KprotoCluster(broker), victim) == expected
    halted_first = [expected[0], CLOSED, *expected[2:]]  # a real leader halts beside its response, now and then before
    with real_kafka(release, brokers=3) as cluster:
        assert fill(RealCluster(cluster), victim) in ([expected, halted_first] if victim == LEADER else [expected])
