"""`__consumer_offsets` of a broker that keeps everything in memory: its records are made when a client reads it.

Theory of operation. Without a data directory commits make no records, as the tables have everything and most offsets
topics are never read. The first read makes records as if the log had just been compacted: each group as it is, the
newest offset of each partition, and the offsets of open transactions. From then on each change is appended to the log
as well, as on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.partitioning import partition_for
from kproto_server.coordinator.change_log import MemoryChangeLog
from kproto_server.coordinator.coordinator import V0_PARTITION
from kproto_server.coordinator.epoch_groups.group import EpochGroup
from kproto_server.coordinator.groups import NO_GENERATION, GroupState
from kproto_server.coordinator.internal_topics import STEP_RECORDS
from kproto_server.coordinator.offsets_log.commits import commit_batch
from kproto_server.coordinator.offsets_log.groups import group_batch
from kproto_server.coordinator.transactional_offsets import transactional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.clock import Clock
    from kproto_server.cluster.topics import Topic
    from kproto_server.coordinator.change_log import Batch, Change
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.log_manager.log_manager import LogManager

WRITTEN_STATES = (GroupState.EMPTY, GroupState.STABLE)


class ReadableChangeLog(MemoryChangeLog):
    """A log in memory that clients can read."""

    keeps = True

    def __init__(self, topic: Topic, log_manager: LogManager, clock: Clock) -> None:
        self._topic = topic
        self._log_manager = log_manager
        self._clock = clock
        self.images: Iterator[None] = iter(())
        """Writes what was there before, in steps; each reader takes the next ones."""

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        if partition != V0_PARTITION:
            self.write(partition, batch, record_count)
        change.settle(0)

    def write(self, partition: int, batch: bytes, record_count: int) -> None:
        """Append a batch to a partition of the offsets topic, and wake the fetches that wait for it."""
        target = self._topic.partitions[partition]
        data = self._log_manager.data_of(self._topic, target)
        data.append(batch, record_count - 1, self._clock.now_ms(), target.leader_epoch)
        self._log_manager.wrote_to_memory(len(batch))


def make_offsets_topic_readable(
    coordinator: GroupCoordinator, topic: Topic, log_manager: LogManager
) -> ReadableChangeLog:
    """Append all changes to the offsets topic from now on; return the log, which has the other records to come."""
    log = ReadableChangeLog(topic, log_manager, coordinator.clock)
    coordinator.log = log
    log.images = _images(coordinator, log, len(topic.partitions))
    return log


def _images(coordinator: GroupCoordinator, log: ReadableChangeLog, count: int) -> Iterator[None]:
    """Write the groups and offsets that were there before, in steps, each as it is by then."""
    record_count = 0
    for partition, batch in _batches(coordinator, count):
        log.write(partition, *batch)
        record_count += batch[1]
        if record_count >= STEP_RECORDS:
            record_count = 0
            yield
            if coordinator.log is not log:
                return  # the topic was deleted between two steps


def _batches(coordinator: GroupCoordinator, count: int) -> Iterator[tuple[int, Batch]]:
    """Yield the batch of each group and of its offsets, with its partition; ``count``: of all partitions."""
    behavior, clock = coordinator.behavior, coordinator.clock
    for group_id in [group.group_id for group in coordinator.groups]:
        group = coordinator.groups.get(group_id)
        partition = partition_for(group_id, count)
        if isinstance(group, EpochGroup):
            new = group.new_data(behavior.first_group_epoch)
            yield partition, group.change_batch(coordinator, new, group.data, clock.now_ms())
        elif group is not None and _has_record(group):
            yield partition, group_batch(group, clock.now_ms(), behavior)
    for group_id in sorted(coordinator.offsets.group_ids()):
        topics = {name: list(offsets) for name, offsets in coordinator.offsets.of_group(group_id).items()}
        for name, indexes in topics.items():
            for start in range(0, len(indexes), STEP_RECORDS):
                # As they are by now: between two steps, offsets are committed, deleted and expire.
                current = coordinator.offsets.of_group(group_id).get(name, {})
                rows = [(index, current[index]) for index in indexes[start : start + STEP_RECORDS] if index in current]
                if rows:
                    batch = commit_batch(group_id, [(name, rows)], clock.now_ms(), behavior)
                    yield partition_for(group_id, count), batch
    for partition, pending in list(coordinator.pending_offsets.items()):
        for producer_id, key, offset in list(pending):
            if pending.get(producer_id, key) is not offset:
                continue  # the transaction ended between two steps
            group_id, name, index = key
            batch = commit_batch(group_id, [(name, [(index, offset.stored)])], clock.now_ms(), behavior)
            yield partition, transactional(batch, producer_id, pending.epochs[producer_id])


def _has_record(group: Group) -> bool:
    """Return whether a classic group has a record: a rebalance writes one when it ends."""
    return group.generation > NO_GENERATION and group.protocol_type is not None and group.state in WRITTEN_STATES
