"""The requests of members of share groups, script by script: each runs against real brokers, and against kproto.

Records are locked for a second; sessions of members last 45 s.
"""

from __future__ import annotations

from collections.abc import Callable

from kproto_server.share_groups.share_partition import ACCEPT, GAP, REJECT, RELEASE, RENEW
from tests.share_groups.other_requests import other_requests
from tests.share_groups.sharers import Sharers

Script = Callable[[Sharers], None]


class Scripts(dict[str, Script]):
    """Scripts by name."""

    def add(self, run: Script) -> Script:
        self[run.__name__] = run
        return run


SCRIPTS = Scripts()
LOCK_MS = 1_000
"""`group.share.record.lock.duration.ms` of the recorded brokers."""


def start(sharers: Sharers, partitions: int = 1) -> None:
    """Create the topic, and read it to its end, so that the group has a start offset of 0."""
    sharers.create(partitions=partitions)
    sharers.join("A")
    sharers.fetch("A", *range(partitions), wait_ms=100)


@SCRIPTS.add
def members_join_and_leave(sharers: Sharers) -> None:
    sharers.create(partitions=3)
    sharers.create("u", partitions=2)
    sharers.heartbeat("A", epoch=1)
    sharers.heartbeat("A", epoch=-1)
    sharers.heartbeat("A", epoch=0)
    sharers.heartbeat("", epoch=0, topics=["t"])
    sharers.heartbeat("x" * 37, epoch=0, topics=["t"])
    sharers.heartbeat(" ", epoch=0, topics=["t"])
    sharers.heartbeat("A", epoch=0, topics=["t"], group="")
    sharers.heartbeat("A", epoch=0, topics=["t"], rack="")
    sharers.heartbeat("A", epoch=-2)
    sharers.heartbeat("A", epoch=0, topics=[])
    sharers.describe()
    sharers.heartbeat("A", epoch=0, topics=["t"])
    sharers.describe()
    sharers.heartbeat("A")
    sharers.describe()
    sharers.heartbeat("A")
    sharers.heartbeat("A", epoch=sharers.epochs["A"] + 5)
    sharers.heartbeat("A", epoch=sharers.epochs["A"] - 1)
    sharers.heartbeat("B", epoch=3)
    sharers.heartbeat("B", epoch=-1)
    sharers.heartbeat("B", epoch=0, topics=["t", "u"])
    sharers.heartbeat("B")
    sharers.heartbeat("A")
    sharers.describe()
    sharers.heartbeat("A", topics=["u", "missing"])
    sharers.heartbeat("A")
    sharers.heartbeat("A", epoch=0, topics=["u"])
    sharers.heartbeat("B")
    sharers.heartbeat("B", epoch=-1)
    sharers.heartbeat("A")
    sharers.heartbeat("A", epoch=-1)
    sharers.describe()
    sharers.describe("unknown")


@SCRIPTS.add
def sessions(sharers: Sharers) -> None:
    start(sharers, partitions=2)
    sharers.fetch("B", 0, epoch=1)
    sharers.fetch("B", 0, epoch=-1)
    sharers.acknowledge("B", {0: [(0, 0, [ACCEPT])]}, epoch=1)
    sharers.acknowledge("B", {0: [(0, 0, [ACCEPT])]}, epoch=-1)
    sharers.acknowledge("B", {0: [(0, 0, [ACCEPT])]}, epoch=0)
    sharers.fetch("B", 0, epoch=0, acks={0: [(0, 0, [ACCEPT])]})
    sharers.fetch("B", 0, epoch=0, member_id=None)
    sharers.fetch("B", 0, epoch=0, group=None)
    sharers.acknowledge("B", {}, epoch=1, group=None)
    sharers.acknowledge("B", {}, epoch=1, member_id=None)
    sharers.fetch("B", 0, epoch=0, member_id="x" * 37)
    sharers.fetch("A", epoch=7)
    sharers.fetch("A", wait_ms=0)
    sharers.produce(1)
    sharers.produce(1, partition=1)
    sharers.fetch("A")
    sharers.fetch("A", forget=[0], wait_ms=0)
    sharers.acknowledge("A", {0: [(0, 0, [ACCEPT])], 1: [(0, 0, [ACCEPT])]})
    sharers.acknowledge("A", {})
    sharers.fetch("A", 0, wait_ms=0)
    sharers.fetch("A", 5, wait_ms=0)
    sharers.fetch("A", 0, topic="?", wait_ms=0)
    sharers.fetch("A", wait_ms=0)
    sharers.fetch("A", 0, epoch=0, wait_ms=0)
    sharers.fetch("A", epoch=-1)
    sharers.fetch("A", epoch=1)
    sharers.fetch("A", 0, epoch=0, wait_ms=0)
    sharers.acknowledge("A", {}, epoch=-1)
    sharers.acknowledge("A", {}, epoch=1)


@SCRIPTS.add
def records_are_acknowledged(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(10, 5)
    sharers.fetch("A")
    sharers.fetch("B", 0, epoch=0, wait_ms=0)
    sharers.acknowledge("A", {0: [(0, 4, [ACCEPT])]})
    sharers.acknowledge("A", {0: [(0, 4, [ACCEPT])]})
    sharers.acknowledge("A", {0: [(5, 5, [RELEASE]), (6, 6, [REJECT]), (7, 9, [ACCEPT, GAP, RELEASE])]})
    sharers.acknowledge("B", {0: [(10, 14, [ACCEPT])]})
    sharers.fetch("B", wait_ms=0)
    sharers.acknowledge("A", {0: [(5, 5, [ACCEPT])]})
    sharers.acknowledge("B", {0: [(5, 5, [ACCEPT]), (9, 9, [ACCEPT])]})
    sharers.fetch("A", acks={0: [(10, 14, [ACCEPT])]}, wait_ms=0)
    sharers.acknowledge("A", {0: [(0, 14, [ACCEPT])]})
    sharers.acknowledge("A", {0: [(15, 15, [ACCEPT])]})
    sharers.produce(3)
    sharers.fetch("A")
    sharers.acknowledge("A", {0: [(15, 20, [ACCEPT])]})
    sharers.acknowledge("A", {0: [(20, 22, [ACCEPT])]})
    sharers.acknowledge("A", {0: [(15, 17, [ACCEPT])]})


@SCRIPTS.add
def acknowledgements_that_are_wrong(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(10)
    sharers.fetch("A")
    wrong: tuple[list[tuple[int, int, list[int]]], ...] = (
        [(3, 2, [ACCEPT])],
        [(0, 4, [])],
        [(0, 4, [ACCEPT, ACCEPT])],
        [(0, 4, [9])],
        [(0, 4, [-1])],
        [(0, 4, [RENEW])],
        [(0, 4, [ACCEPT]), (3, 6, [ACCEPT])],
        [(5, 6, [ACCEPT]), (3, 4, [ACCEPT])],
        [(-5, 4, [ACCEPT])],
        [],
    )
    for batches in wrong:
        sharers.acknowledge("A", {0: batches})
    sharers.acknowledge("A", {7: [(0, 0, [ACCEPT])]})
    sharers.acknowledge("A", {0: [(0, 0, [ACCEPT])]}, topic="?")
    sharers.fetch("A", acks={0: [(0, 4, [9])]}, wait_ms=0)
    sharers.fetch("A", acks={7: [(0, 4, [ACCEPT])]}, wait_ms=0)
    sharers.fetch("A", acks={0: [(0, 9, [ACCEPT])]}, wait_ms=0)


@SCRIPTS.add
def locks_end(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(4)
    for _ in range(6):
        sharers.fetch("A", wait_ms=0)
        sharers.pass_time(LOCK_MS + 500)
    sharers.fetch("A", wait_ms=0)
    sharers.acknowledge("A", {0: [(0, 3, [ACCEPT])]})


@SCRIPTS.add
def batches_are_delivered_in_smaller_numbers(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(8, 8)
    for _ in range(30):
        sharers.fetch("A", epoch=0, wait_ms=0)
        sharers.acknowledge("A", {0: [(0, 15, [RELEASE])]})
        sharers.fetch("B", 0, epoch=0, wait_ms=0)
        sharers.pass_time(LOCK_MS + 500)


@SCRIPTS.add
def locks_are_renewed(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(4)
    sharers.fetch("A", wait_ms=0)
    sharers.pass_time(700)
    sharers.acknowledge("A", {0: [(0, 1, [RENEW])]}, renews=True)
    sharers.acknowledge("A", {0: [(0, 1, [RENEW])]})
    sharers.pass_time(700)
    sharers.fetch("B", 0, epoch=0, wait_ms=0)
    sharers.acknowledge("A", {0: [(0, 1, [ACCEPT])]})
    sharers.fetch("B", acks={0: [(2, 3, [RENEW])]}, renews=True)
    sharers.fetch("B", acks={0: [(2, 3, [RENEW])]}, renews=True, wait_ms=0, min_bytes=0, max_bytes=0, max_records=0)
    sharers.acknowledge("B", {0: [(2, 2, [RENEW]), (3, 3, [ACCEPT])]}, renews=True)


@SCRIPTS.add
def limits_of_a_fetch(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(5, 5, 5, 5, 5)
    sharers.fetch("A", max_records=1, wait_ms=0)
    sharers.fetch("A", max_records=7, wait_ms=0)
    sharers.fetch("A", max_records=100, batch_size=3, wait_ms=0)
    sharers.produce(5, 5)
    sharers.fetch("A", max_records=3, mode=1, wait_ms=0)
    sharers.fetch("A", max_records=3, mode=1, wait_ms=0)
    sharers.fetch("A", max_records=3, mode=1, wait_ms=0)
    sharers.fetch("A", max_records=0, wait_ms=0)
    sharers.fetch("A", max_bytes=0, wait_ms=0)
    sharers.fetch("A", max_bytes=1, wait_ms=0)
    sharers.fetch("A", mode=7, wait_ms=0)
    sharers.fetch("A", min_bytes=0, wait_ms=5_000)


@SCRIPTS.add
def a_closed_session_releases(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(4)
    sharers.fetch("A", wait_ms=0)
    sharers.fetch("B", 0, epoch=0, wait_ms=0)
    sharers.acknowledge("A", {0: [(0, 0, [ACCEPT])]}, epoch=-1)
    sharers.fetch("B")
    sharers.fetch("B", acks={0: [(1, 1, [RELEASE])]}, epoch=-1)
    sharers.fetch("C", 0, epoch=0)


@SCRIPTS.add
def a_session_is_replaced(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(4)
    sharers.fetch("A", wait_ms=0)
    sharers.fetch("A", 0, epoch=0, wait_ms=0)
    sharers.acknowledge("A", {0: [(0, 3, [ACCEPT])]})


@SCRIPTS.add
def offsets_are_described_altered_and_deleted(sharers: Sharers) -> None:
    sharers.create(partitions=2)
    sharers.create("u")
    sharers.describe_offsets()
    sharers.describe_offsets("t", "missing")
    sharers.delete_offsets("t")
    sharers.delete_offsets()
    sharers.delete_offsets("t", group="")
    sharers.alter_offsets({"t": {0: 0}}, group="")
    sharers.alter_offsets({})
    sharers.describe()
    sharers.join("A")
    sharers.fetch("A", 0, 1, wait_ms=100)
    sharers.describe_offsets()
    sharers.produce(5, 5)
    sharers.produce(4, partition=1)
    sharers.fetch("A")
    sharers.acknowledge("A", {0: [(0, 1, [ACCEPT]), (3, 4, [ACCEPT])]})
    sharers.pass_time(2 * LOCK_MS)
    sharers.describe_offsets()
    sharers.describe_offsets("t", partitions=[1, 0])
    sharers.describe_offsets("u")
    sharers.alter_offsets({"t": {0: 0}})
    sharers.delete_offsets("t")
    sharers.fetch("A", epoch=-1)
    sharers.describe_offsets()
    sharers.heartbeat("A", epoch=-1)
    sharers.alter_offsets({"t": {0: 3, 7: 0}, "u": {0: 0}, "missing": {0: 0}})
    sharers.describe_offsets()
    sharers.delete_offsets("t", "missing")
    sharers.describe_offsets()
    sharers.delete_offsets("t", "u")
    sharers.alter_offsets({"t": {0: 7}})
    sharers.describe_offsets()


@SCRIPTS.add
def an_altered_group_reads_from_its_new_offsets(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(5, 5)
    sharers.fetch("A")
    sharers.acknowledge("A", {0: [(0, 4, [ACCEPT])]})
    sharers.fetch("A", epoch=-1)
    sharers.heartbeat("A", epoch=-1)
    sharers.alter_offsets({"t": {0: 2}})
    sharers.join("B")
    sharers.fetch("B", 0)
    sharers.acknowledge("B", {0: [(0, 9, [ACCEPT])]})
    sharers.acknowledge("B", {0: [(2, 4, [ACCEPT])]})
    sharers.fetch("B")
    sharers.describe_offsets()
    sharers.fetch("B", epoch=-1)
    sharers.heartbeat("B", epoch=-1)
    sharers.describe()
    sharers.list_groups()
    sharers.list_groups("share")
    sharers.list_groups("consumer")
    sharers.list_groups(states=["Empty"])


@SCRIPTS.add
def groups_are_deleted(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(3)
    sharers.fetch("A")
    sharers.acknowledge("A", {0: [(0, 0, [ACCEPT])]})
    sharers.list_groups()
    sharers.delete_groups("g", "other")
    sharers.fetch("A", epoch=-1)
    sharers.heartbeat("A", epoch=-1)
    sharers.delete_groups("g", "other")
    sharers.describe()
    sharers.describe_offsets()
    sharers.describe_offsets("t")
    sharers.list_groups()
    sharers.delete_groups("g")
    sharers.join("A")
    sharers.describe()
    sharers.fetch("A", 0, epoch=0, wait_ms=100)
    sharers.acknowledge("A", {0: [(1, 1, [ACCEPT])]})
    sharers.fetch("A", wait_ms=100)
    sharers.alter_offsets({"t": {0: 1}}, group="new")
    sharers.describe_offsets(group="new")
    sharers.describe(group="new")
    sharers.delete_groups("new")
    sharers.describe_offsets("t", group="new")
    sharers.describe(group="new")


@SCRIPTS.add
def share_partitions_end_with_connections(sharers: Sharers) -> None:
    """Without a session of the group, the broker forgets where it began unless the state has a start offset."""
    start(sharers)
    sharers.fetch("A", epoch=-1)
    sharers.heartbeat("A", epoch=-1)
    sharers.disconnect("A")
    sharers.produce(5)
    sharers.join("B")
    sharers.fetch("B", 0, wait_ms=300)
    sharers.produce(2)
    sharers.fetch("B", wait_ms=300)
    sharers.join("C")
    sharers.fetch("C", 0, wait_ms=100)
    sharers.disconnect("C")
    sharers.acknowledge("B", {0: [(5, 5, [ACCEPT])]})
    sharers.disconnect("B")
    sharers.produce(1)
    sharers.fetch("C", 0, epoch=0, wait_ms=300)
    sharers.describe_offsets("t")


@SCRIPTS.add
def deleted_groups_begin_again_on_new_connections(sharers: Sharers) -> None:
    start(sharers)
    sharers.produce(3)
    sharers.fetch("A", wait_ms=300)
    sharers.acknowledge("A", {0: [(0, 0, [ACCEPT])]})
    sharers.heartbeat("A", epoch=-1)
    sharers.delete_groups("g")
    sharers.disconnect("A")
    sharers.join("B")
    sharers.fetch("B", 0, wait_ms=300)
    sharers.produce(1)
    sharers.fetch("B", wait_ms=300)


@SCRIPTS.add
def other_requests_name_a_share_group(sharers: Sharers) -> None:
    start(sharers)
    for state in ("Stable", "Empty"):
        if state == "Empty":
            sharers.fetch("A", epoch=-1)
            sharers.heartbeat("A", epoch=-1)
        for request, version in other_requests(sharers.group_id, sharers.full("t")):
            sharers.send("other", request, version)
    sharers.describe()


@SCRIPTS.add
def share_requests_name_a_consumer_group(sharers: Sharers) -> None:
    sharers.create()
    _, consumer, *_ = (request for request, _ in other_requests(sharers.group_id, sharers.full("t")))
    sharers.send("other", consumer, 1)
    sharers.heartbeat("A", epoch=0, topics=["t"])
    sharers.heartbeat("A", epoch=-1)
    sharers.describe()
    sharers.describe_offsets()
    sharers.alter_offsets({"t": {0: 0}})
    sharers.delete_offsets("t")
    sharers.send("other", consumer.replace(member_epoch=-1), 1)
    sharers.heartbeat("A", epoch=0, topics=["t"])
    sharers.describe()
    sharers.list_groups()
