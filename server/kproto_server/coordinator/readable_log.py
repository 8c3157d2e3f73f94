"""`__consumer_offsets` of a broker that keeps everything in memory: its records are made when a client reads it.

Theory of operation. Without a data directory commits make no records, as the tables have everything and most offsets
topics are never read. The first read makes records as if the log had just been compacted: each group as it is, and the
newest offset of each partition. From then on each change is appended to the log as well, as on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.partitioning import partition_for
from kproto_server.coordinator.change_log import MemoryChangeLog
from kproto_server.coordinator.coordinator import V0_PARTITION
from kproto_server.coordinator.groups import NO_GENERATION, GroupState
from kproto_server.coordinator.offsets_log.commits import commit_batch
from kproto_server.coordinator.offsets_log.groups import group_batch

if TYPE_CHECKING:
    from kproto_server.clock import Clock
    from kproto_server.cluster.topics import Topic
    from kproto_server.coordinator.change_log import Change
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.log_manager.log_manager import LogManager

WRITTEN_STATES = (GroupState.EMPTY, GroupState.STABLE)
"""The states in which a group has a record; a rebalance writes one when it ends."""


class ReadableChangeLog(MemoryChangeLog):
    """A log in memory that clients can read."""

    keeps = True

    def __init__(self, topic: Topic, log_manager: LogManager, clock: Clock) -> None:
        self._topic = topic
        self._log_manager = log_manager
        self._clock = clock

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        if partition != V0_PARTITION:
            self.write(partition, batch, record_count)
        change.settle(0)

    def write(self, partition: int, batch: bytes, record_count: int) -> None:
        """Append a batch to a partition of the offsets topic, and wake the fetches that wait for it."""
        target = self._topic.partitions[partition]
        data = self._log_manager.data_of(self._topic, target)
        data.append(batch, record_count - 1, self._clock.now_ms(), target.leader_epoch)
        data.notify_waiters()
        self._log_manager.wrote_to_memory(len(batch))


def make_offsets_topic_readable(coordinator: GroupCoordinator, topic: Topic, log_manager: LogManager) -> None:
    """Write the present groups and offsets to the offsets topic, and append all changes to it from now on."""
    log = ReadableChangeLog(topic, log_manager, coordinator.clock)
    count, behavior = len(topic.partitions), coordinator.behavior
    now_ms = coordinator.clock.now_ms()
    for group in coordinator.groups:
        if group.generation > NO_GENERATION and group.protocol_type is not None and group.state in WRITTEN_STATES:
            log.write(partition_for(group.group_id, count), *group_batch(group, now_ms, behavior))
    for group_id in sorted(coordinator.offsets.group_ids()):
        entries = [(name, list(offsets.items())) for name, offsets in coordinator.offsets.of_group(group_id).items()]
        log.write(partition_for(group_id, count), *commit_batch(group_id, entries, now_ms, behavior))
    coordinator.log = log
