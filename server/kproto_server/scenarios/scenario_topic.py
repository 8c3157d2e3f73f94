"""The topic and the group of a failure scenario, and the failures that can be applied to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.cluster.topics import Topic
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.network.moves import truncate

if TYPE_CHECKING:
    from kproto_server.broker.broker import Broker
    from kproto_server.network.server import Server

TOPIC = "scenario"
GROUP = "scenario"
BATCH_RECORDS = 10
"""Records per batch; a log is truncated between batches."""
RECORD_INTERVAL_MS = 1000
"""Between the timestamps of records."""


class ScenarioTopic:
    """One topic and one group of a running broker, which belongs to the caller.

    All methods change the broker's state directly: they send no requests, so the request log has the client's requests
    only.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        broker._call(_create_topic)

    def produce(self, count: int, partition: int = 0) -> None:
        """Append records with timestamps one second apart."""
        self._broker._call(lambda server: _produce(server, count, partition))

    def commit(self, offset: int, partition: int = 0) -> None:
        """Commit an offset of the group, as an earlier consumer would have."""

        def commit(server: Server) -> None:
            state, topic = server.state, _topic(server)
            state.cluster.ensure_offsets_topic(state.clock.now_ms())
            epoch = topic.partitions[partition].leader_epoch
            entry = OffsetAndMetadata(offset, epoch, "", state.clock.now_ms(), None, topic.topic_id)
            state.coordinator.offsets.apply_commit(GROUP, [(TOPIC, [(partition, entry)])])

        self._broker._call(commit)

    def delete_offset(self, partition: int = 0) -> None:
        """Delete the group's committed offset, as OffsetDelete does."""
        self._broker._call(
            lambda server: server.state.coordinator.offsets.apply_deletion(GROUP, [(TOPIC, [partition])])
        )

    def delete_records(self, before: int, partition: int = 0) -> None:
        """Delete the records before an offset, as retention does."""
        self._broker._call(lambda server: _topic(server).partitions[partition].data.delete_before(before))

    def truncate(self, end: int, partition: int = 0) -> None:
        """Truncate the log under a new leader epoch, as an unclean leader election does."""
        self._broker._call(lambda server: truncate(server.state, TOPIC, partition, end))

    def add_partition(self) -> None:
        """Add a partition to the topic."""

        def add_partition(server: Server) -> None:
            topic = _topic(server)
            server.state.cluster.add_partitions(topic, len(topic.partitions) + 1)

        self._broker._call(add_partition)

    def recreate(self) -> None:
        """Delete the topic, and with it the group's committed offset, and create it again."""

        def recreate(server: Server) -> None:
            server.state.cluster.delete_topic(TOPIC)
            _create_topic(server)

        self.delete_offset()
        self._broker._call(recreate)

    def expire_offsets(self) -> None:
        """Advance the broker's clock by eight days, one day more than the default offset retention."""
        self._broker.clock.advance(days=8)

    def log_bounds(self) -> dict[int, tuple[int, int]]:
        """Return the log start offset and the high watermark of each partition."""
        return self._broker._call(
            lambda server: {
                partition.index: (partition.log_start_offset, partition.high_watermark)
                for partition in _topic(server).partitions
            }
        )

    def topic_id(self) -> bytes:
        return self._broker._call(lambda server: _topic(server).topic_id)


def _create_topic(server: Server) -> None:
    configs = {"retention.ms": "-1"}
    topic = server.state.cluster.create_topic(TOPIC, partition_count=1, replication_factor=1, configs=configs)
    assert isinstance(topic, Topic), "the broker is new"


def _topic(server: Server) -> Topic:
    return server.state.cluster.topics[TOPIC]


def _produce(server: Server, count: int, partition: int) -> None:
    state, topic = server.state, _topic(server)
    topic_partition = topic.partitions[partition]
    data = state.log_manager.data_of(topic, topic_partition)
    first_timestamp_ms = state.clock.now_ms() - RECORD_INTERVAL_MS * (data.next_offset + count)
    for start in range(data.next_offset, data.next_offset + count, BATCH_RECORDS):
        timestamps = [
            first_timestamp_ms + RECORD_INTERVAL_MS * offset for offset in range(start, start + BATCH_RECORDS)
        ]
        records = [
            Record(None, b"record %d of partition %d" % (start + delta, partition), offset=delta, timestamp=timestamp)
            for delta, timestamp in enumerate(timestamps)
        ]
        data.append(build_record_batch(records), BATCH_RECORDS - 1, timestamps[-1], topic_partition.leader_epoch)
