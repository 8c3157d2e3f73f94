"""Pruning of `__share_group_state`: records that no state needs are deleted.

Theory of operation. The topic is not compacted. The state of a share partition is its last snapshot with the updates
behind it, so of each partition of the topic all records before the oldest of these snapshots are redundant: the log
start offset moves there periodically, and retention deletes the segments. A share partition without members would hold
it back; so each state whose snapshot is old gets a new one, unless all states of the partition have such a snapshot.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kproto.records.partitioning import SHARE_STATE_TOPIC
from kproto_server.clock import PeriodicTask
from kproto_server.storage.errors import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kproto_server.clock import Clock
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Partition
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.share_groups.share_states import SharePartitionKey, ShareState

logger = logging.getLogger("kproto.log")

PRUNE_SETTING = "share.coordinator.state.topic.prune.interval.ms"
COLD_SETTING = "share.coordinator.cold.partition.snapshot.interval.ms"


class StateTopicPruning:
    """The tasks that prune the topic, from `start` to `stop`."""

    def __init__(
        self,
        states: Mapping[SharePartitionKey, ShareState],
        partition_of: Callable[[SharePartitionKey], Partition | None],
        snapshot: Callable[[SharePartitionKey, int], object],
        settings: DynamicSettings,
        cluster: Cluster,
        clock: Clock,
        log_manager: LogManager,
    ) -> None:
        """``partition_of`` returns the partition that has a state; ``snapshot`` writes a new snapshot of one."""
        self.snapshot_offsets: dict[SharePartitionKey, int] = {}
        """Where the log has the last snapshot of each state."""
        self._states = states
        self._partition_of = partition_of
        self._snapshot = snapshot
        self._cluster = cluster
        self._log_manager = log_manager
        self._cold_ms = settings.current.int(COLD_SETTING)
        self._tasks = (
            PeriodicTask(clock, settings.current.int(PRUNE_SETTING), self.prune),
            PeriodicTask(clock, self._cold_ms, self.snapshot_cold),
        )

    def start(self) -> None:
        for task in self._tasks:
            task.start()

    def stop(self) -> None:
        for task in self._tasks:
            task.stop()

    def note(self, key: SharePartitionKey, offset: int | None) -> None:
        """Note the offset of a new snapshot; None: the state was deleted."""
        if offset is None:
            self.snapshot_offsets.pop(key, None)
        else:
            self.snapshot_offsets[key] = offset

    def prune(self, now_ms: int) -> Iterator[None]:
        """Delete the records before the oldest snapshot of each partition; yields while their index is made."""
        yield from self._log_manager.index_steps((SHARE_STATE_TOPIC,))
        topic = self._cluster.topics.get(SHARE_STATE_TOPIC)
        if topic is None:
            return
        oldest: dict[int, int] = {}
        for key, offset in self.snapshot_offsets.items():
            partition = self._partition_of(key)
            assert partition is not None, "its topic exists"
            oldest[partition.index] = min(offset, oldest.get(partition.index, offset))
        has_changed = False
        for index, offset in oldest.items():
            partition = topic.partitions[index]
            if offset > partition.log_start_offset:
                try:
                    self._log_manager.data_of(topic, partition).delete_before(offset)
                except UNREADABLE as error:
                    logger.warning("%s-%d can't be pruned now: %s", topic.name, index, error)
                    continue
                has_changed = True
        if has_changed:
            self._log_manager.save_start_offsets({})

    def snapshot_cold(self, now_ms: int) -> None:
        """Write new snapshots of states that have old ones, unless all of the partition have such a snapshot."""
        states = self._states
        by_partition: dict[int, list[SharePartitionKey]] = {}
        for key in states:
            partition = self._partition_of(key)
            if partition is not None:
                by_partition.setdefault(partition.index, []).append(key)
        for keys in by_partition.values():
            if all(states[key].created_ms != states[key].written_ms for key in keys):
                continue
            for key in keys:
                if now_ms - states[key].written_ms >= self._cold_ms:
                    self._snapshot(key, now_ms)
