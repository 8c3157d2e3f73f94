"""The topic and the group that an accident happens to, set up within a broker of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.cluster.topics import Topic
from kproto_server.coordinator.offsets import OffsetAndMetadata

if TYPE_CHECKING:
    from kproto_server.broker.broker import Broker
    from kproto_server.network.server import Server

TOPIC = "accident"
GROUP = "accident"
BATCH = 10
"""Records a batch: a log is truncated between batches."""
STEP_MS = 1000
"""Between the times of records."""


class Ground:
    """One topic and one group. What is done here is done by the broker itself, and is in no request log."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        broker._call(_create_topic)

    def produce(self, count: int, partition: int = 0) -> None:
        """Append records, a second apart."""
        self._broker._call(lambda server: _produce(server, count, partition))

    def commit(self, offset: int, partition: int = 0) -> None:
        """Commit for the group, as an earlier run of its consumer would have."""

        def act(server: Server) -> None:
            state, topic = server.state, _topic(server)
            state.cluster.ensure_offsets_topic(state.clock.now_ms())
            epoch = topic.partitions[partition].leader_epoch
            entry = OffsetAndMetadata(offset, epoch, "", state.clock.now_ms(), None, topic.topic_id)
            state.coordinator.offsets.apply_commit(GROUP, [(TOPIC, [(partition, entry)])])

        self._broker._call(act)

    def delete_offset(self, partition: int = 0) -> None:
        """Delete the group's offset, as OffsetDelete does."""
        self._broker._call(
            lambda server: server.state.coordinator.offsets.apply_deletion(GROUP, [(TOPIC, [partition])])
        )

    def delete_records(self, before: int, partition: int = 0) -> None:
        """Have the log begin later, as retention does."""
        self._broker._call(lambda server: _topic(server).partitions[partition].data.delete_before(before))

    def truncate(self, end: int, partition: int = 0) -> None:
        """Have the log end earlier, under the next leader epoch, as an unclean election does."""

        def act(server: Server) -> None:
            where = _topic(server).partitions[partition]
            where.leader_epoch += 1
            where.data.truncate(end)
            server.state.cluster.version += 1

        self._broker._call(act)

    def add_partition(self) -> None:
        """Have the topic one partition more."""

        def act(server: Server) -> None:
            topic = _topic(server)
            server.state.cluster.add_partitions(topic, len(topic.partitions) + 1)

        self._broker._call(act)

    def expire_offsets(self) -> None:
        """Let eight days pass."""
        self._broker.clock.advance(days=8)

    def bounds(self) -> dict[int, tuple[int, int]]:
        """Return where each partition's log begins and ends."""
        return self._broker._call(
            lambda server: {one.index: (one.log_start_offset, one.high_watermark) for one in _topic(server).partitions}
        )

    def topic_id(self) -> bytes:
        return self._broker._call(lambda server: _topic(server).topic_id)


def _create_topic(server: Server) -> None:
    kept_for_ever = {"retention.ms": "-1"}
    made = server.state.cluster.create_topic(TOPIC, partition_count=1, replication_factor=1, configs=kept_for_ever)
    assert isinstance(made, Topic), "the broker is new"


def _topic(server: Server) -> Topic:
    return server.state.cluster.topics[TOPIC]


def _produce(server: Server, count: int, partition: int) -> None:
    state, topic = server.state, _topic(server)
    where = topic.partitions[partition]
    data = state.log_manager.data_of(topic, where)
    begin_ms = state.clock.now_ms() - STEP_MS * (data.next_offset + count)
    for start in range(data.next_offset, data.next_offset + count, BATCH):
        times = [begin_ms + STEP_MS * offset for offset in range(start, start + BATCH)]
        records = [
            Record(None, b"record %d of partition %d" % (start + delta, partition), offset=delta, timestamp=time_ms)
            for delta, time_ms in enumerate(times)
        ]
        data.append(build_record_batch(records), BATCH - 1, times[-1], where.leader_epoch)
