"""What becomes of share groups when topics change, script by script."""

from __future__ import annotations

from kproto_server.share_groups.share_partition import ACCEPT, RELEASE
from tests.share_groups.scripts import LOCK_MS, Scripts, start
from tests.share_groups.sharers import Sharers

TOPIC_SCRIPTS = Scripts()


@TOPIC_SCRIPTS.add
def topics_are_deleted(sharers: Sharers) -> None:
    sharers.create(partitions=2)
    sharers.create("u")
    sharers.join("A", "t", "u")
    sharers.fetch("A", 0, 1, wait_ms=100)
    sharers.produce(5)
    sharers.fetch("A")
    sharers.acknowledge("A", {0: [(0, 1, [ACCEPT])]})
    sharers.describe_offsets()
    sharers.delete_topic("u")
    sharers.describe_offsets()
    sharers.heartbeat("A")
    sharers.describe()
    sharers.delete_topic("t")
    sharers.describe_offsets()
    sharers.fetch("A", topic="deleted t", wait_ms=100)
    sharers.acknowledge("A", {0: [(2, 2, [ACCEPT])]}, topic="deleted t")
    sharers.heartbeat("A")
    sharers.describe()
    sharers.describe_offsets("t")
    sharers.create()
    sharers.heartbeat("A")
    sharers.heartbeat("A")
    sharers.describe_offsets()
    sharers.fetch("A", 0, epoch=0, wait_ms=100)
    sharers.produce(2)
    sharers.fetch("A")
    sharers.acknowledge("A", {0: [(0, 0, [ACCEPT])]})
    sharers.describe_offsets()


@TOPIC_SCRIPTS.add
def partitions_are_added(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(2)
    sharers.add_partitions(3)
    sharers.produce(4, partition=2)
    sharers.heartbeat("A")
    sharers.heartbeat("A")
    sharers.describe()
    sharers.describe_offsets()
    sharers.fetch("A")
    sharers.fetch("A", 1, wait_ms=100)
    sharers.fetch("A", 2)
    sharers.acknowledge("A", {2: [(0, 0, [ACCEPT])]})
    sharers.pass_time(2 * LOCK_MS)
    sharers.describe_offsets()


@TOPIC_SCRIPTS.add
def records_are_deleted(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(5, 5, 5)
    sharers.fetch("A", max_records=7)
    sharers.acknowledge("A", {0: [(0, 0, [ACCEPT]), (2, 3, [RELEASE]), (4, 4, [ACCEPT])]})
    sharers.delete_records(0, 3)
    sharers.describe_offsets()
    sharers.fetch("A", wait_ms=100)
    sharers.acknowledge("A", {0: [(1, 1, [ACCEPT])]})
    sharers.acknowledge("A", {0: [(5, 9, [RELEASE])]})
    sharers.delete_records(0, 7)
    sharers.fetch("A", wait_ms=100)
    sharers.describe_offsets()
    sharers.delete_records(0, 15)
    sharers.fetch("A", wait_ms=100)
    sharers.describe_offsets()
    sharers.produce(2)
    sharers.fetch("A", wait_ms=100)
    sharers.acknowledge("A", {0: [(15, 16, [ACCEPT])]})
    sharers.describe_offsets()
