"""`__consumer_offsets` of a broker that keeps everything in memory: made when somebody reads it.

Theory of operation. Without a data directory no records are made of commits, as the tables are all there is and most
offsets topics are never read. Who reads this one finds it as if it had been compacted just before: each group as it is,
and the newest offset of each partition. From then on every change is appended too, as it would be to a log on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.change_log import MemoryChangeLog
from kproto_server.coordinator.groups import NO_GENERATION, GroupState
from kproto_server.coordinator.offsets_log.commits import commit_batch
from kproto_server.coordinator.offsets_log.groups import group_batch
from kproto_server.coordinator.partitioning import OFFSETS_TOPIC, V0_PARTITION, partition_for

if TYPE_CHECKING:
    from kproto_server.coordinator.change_log import Change
    from kproto_server.state import BrokerState

WRITTEN_STATES = (GroupState.EMPTY, GroupState.STABLE)
"""Those in which a group's record is written; of one that is rebalancing the next will be."""


class ShownChangeLog(MemoryChangeLog):
    """A log in memory that can be read."""

    keeps = True

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        if partition != V0_PARTITION:
            self.write(partition, batch, record_count)
        change.settle(0)

    def write(self, partition: int, batch: bytes, record_count: int) -> None:
        """Put a batch into a partition of the offsets topic."""
        state = self._state
        topic = state.cluster.topics[OFFSETS_TOPIC]
        where = topic.partitions[partition]
        data = state.data_of(topic, where)
        data.append(batch, record_count - 1, state.clock.now_ms(), where.leader_epoch)
        data.wake()
        state.wrote_to_memory(len(batch))


def show_offsets_topic(state: BrokerState) -> None:
    """Have the offsets topic be read from now on, as it is."""
    shown = ShownChangeLog(state)
    count = len(state.cluster.topics[OFFSETS_TOPIC].partitions)
    now_ms = state.clock.now_ms()
    for group in state.groups:
        if group.generation > NO_GENERATION and group.protocol_type is not None and group.state in WRITTEN_STATES:
            shown.write(partition_for(group.group_id, count), *group_batch(group, now_ms, state.kafka_version))
    for group_id in sorted(state.offsets.group_ids()):
        entries = [(topic, list(offsets.items())) for topic, offsets in state.offsets.of_group(group_id).items()]
        shown.write(partition_for(group_id, count), *commit_batch(group_id, entries, now_ms, state.kafka_version))
    state.log = shown
