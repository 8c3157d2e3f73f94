"""Disks of nodes that do not take writes: the node responds KAFKA_STORAGE_ERROR, and ends.

Theory of operation. A real broker whose only log directory fails responds KAFKA_STORAGE_ERROR to the write that has
found it, and halts; the cluster notices that when its session times out (measured on 4.4.0, where a write beyond the
limit of file sizes has failed, with the broker as the leader and as a follower). While some disk is bad, `Disks` stands
before the two logs of a broker: that of the coordinators' changes, and those of topics. A write ends each running node
with such a disk that has a replica of the partition; it fails if that is the leader. Without bad disks nothing of this
exists.
"""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING

from kproto.errors import UsageError
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto_server.coordinator.change_log import STORAGE_ERROR
from kproto_server.observation.conditions import check_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.coordinator.change_log import Change, ChangeLog, ResponseT
    from kproto_server.deferred import DeferredResponse
    from kproto_server.faults.rules import Rule
    from kproto_server.network.server import Server
    from kproto_server.partition_log.partition_data import PartitionData


WRITES = (0, 8, 14, 22, 24, 25, 26, 28, 68, 76, 79, 88)
"""The APIs whose requests wait for a write: Produce, OffsetCommit, SyncGroup, those of transactions, heartbeats of the
newer groups, and ShareAcknowledge."""


class Disks:
    """The disks of all nodes that do not take writes."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._bad: dict[int, int] = {}
        """The error of the operating system, by node."""
        self._slow: dict[int, list[Rule]] = {}
        """The rules of slow disks, by node."""
        self._data_of: Callable[[Topic, Partition], PartitionData] | None = None
        """That of the log manager, while some disk is bad."""

    def set(self, node_id: int, error: int, latency_ms: int) -> None:
        """Have the disk of a node refuse all writes with an error (0: take them), and take so long for each."""
        faults = self._server.faults
        for rule in self._slow.pop(node_id, ()):
            faults.remove(rule)
        if latency_ms:
            served = self._server.state.kafka_version.api_versions
            apis = [key for key in WRITES if key in served]
            rules = [faults.add({"api": key, "node_id": node_id, "delay_ms": latency_ms}) for key in apis]
            self._slow[node_id] = rules
        if error:
            self._bad[node_id] = error
            self._begin()
        else:
            self._bad.pop(node_id, None)
            if not self._bad:
                self._end_checks()

    def clear(self) -> None:
        """Make all disks good."""
        for node_id in {*self._bad, *self._slow}:
            self.set(node_id, 0, 0)

    def _end_checks(self) -> None:
        state = self._server.state
        if self._data_of is not None:
            state.log_manager.data_of, self._data_of = self._data_of, None
            state.cluster.changed()
        if isinstance(state.coordinator.log, DiskErrorLog):
            state.coordinator.log = state.coordinator.log.log

    def _begin(self) -> None:
        state = self._server.state
        if self._data_of is None:
            self._data_of = state.log_manager.data_of
            state.log_manager.data_of = self._checked_data_of
            state.coordinator.log = DiskErrorLog(state.coordinator.log, self)
            state.cluster.changed()

    def _checked_data_of(self, topic: Topic, partition: Partition) -> PartitionData:
        error = self.error(partition)
        if error:
            raise OSError(error, "the disk takes no writes", topic.name)
        assert self._data_of is not None, "it is that of the log manager"
        return self._data_of(topic, partition)

    def error(self, partition: Partition) -> int:
        """Return the error of a write to a partition, 0 if there is none; nodes whose disks have failed end."""
        cluster = self._server.state.cluster
        for replica in partition.replicas:
            if replica in self._bad and cluster.is_alive(replica) and replica not in cluster.silent:
                cluster.silent.add(replica)  # it does not replicate any more
                self._server.loop.post(partial(self._end, replica))
        return self._bad.get(partition.leader, 0)

    def offsets_error(self, index: int) -> int:
        """As `error`, for a partition of the offsets topic."""
        topic = self._server.state.cluster.topics.get(OFFSETS_TOPIC)
        return 0 if topic is None or index < 0 else self.error(topic.partitions[index])

    def _end(self, node_id: int) -> None:
        if node_id not in self._server.nodes.listeners:
            return
        if node_id in self._bad:
            self._server.nodes.crash(node_id, resets=False)
        else:  # its disk was made good in this iteration
            self._server.state.cluster.silent.discard(node_id)

    def check_start(self, node_id: int) -> None:
        """Refuse to start a node whose disk is bad: it would end at once.

        Raises:
            UsageError: it is.
        """
        if node_id in self._bad:
            reason = "full" if self._bad[node_id] == errno.ENOSPC else "read-only"
            raise UsageError(f"node {node_id} can't start: its disk is {reason}")


class DiskErrorLog:
    """The log of the coordinators' changes while disks are bad."""

    keeps = True

    def __init__(self, log: ChangeLog, disks: Disks) -> None:
        self.log: ChangeLog = log
        self._disks = disks

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        if self._disks.offsets_error(partition):
            change.settle(STORAGE_ERROR)
        else:
            self.log.append(partition, change, batch, record_count)

    def write_now(self, partition: int, checked: bytes, record_count: int) -> int | None:
        return (
            STORAGE_ERROR
            if self._disks.offsets_error(partition)
            else self.log.write_now(partition, checked, record_count)
        )

    def then(self, respond: Callable[[], ResponseT]) -> ResponseT | DeferredResponse:
        return self.log.then(respond)

    def in_flight(self) -> Iterable[Change]:
        return self.log.in_flight()

    def without_topic(self) -> DiskErrorLog:
        return DiskErrorLog(self.log.without_topic(), self._disks)


def checked(*, full: object, read_only: object, latency_ms: object) -> tuple[int, int]:
    """Return the error and the latency of a disk as a user gives them.

    Raises:
        UsageError: there are none, or a value is wrong.
    """
    for name, value in (("full", full), ("read_only", read_only)):
        if not isinstance(value, bool):
            raise UsageError(f"{name} is True or False, not {value!r}")
    check_number("latency_ms", latency_ms)
    if (full, read_only, latency_ms) == (False, False, 0) or (full and read_only):
        raise UsageError("a disk is full, or read_only, or has a latency_ms: give one")
    error = errno.ENOSPC if full else errno.EROFS if read_only else 0
    return error, int(latency_ms)  # type: ignore[call-overload]  # checked


def set_disk(server: Server, node_id: int, error: int = 0, latency_ms: int = 0) -> None:
    """Have the disk of a node refuse all writes with an error (0: take them), and take so long for each.

    Raises:
        UsageError: the node does not exist.
    """
    nodes = server.state.cluster.nodes
    if node_id not in nodes:
        raise UsageError(f"node {node_id!r} does not exist: the nodes are {', '.join(map(str, nodes))}")
    disks = server.nodes.disks
    if not isinstance(disks, Disks):
        disks = server.nodes.disks = Disks(server)
    disks.set(node_id, error, latency_ms)
