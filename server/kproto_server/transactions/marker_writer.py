"""The markers of decided transactions: written to the partitions of a transaction, by their leaders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.records.transaction_state import TransactionStatus
from kproto_server.cluster.topics import NO_LEADER
from kproto_server.deferred import NO_RESPONSE
from kproto_server.log_manager.markers import EndMarker, write_marker

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kproto_server.cluster.cluster import Cluster
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.deferred import NoResponse
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.partition_log.partition_data import Append
    from kproto_server.transactions.transaction import TopicPartition, TransactionValues


def end_marker(decided: TransactionValues, coordinator_epoch: int) -> EndMarker:
    """Return what the markers of a decided transaction say."""
    commits = decided.status is TransactionStatus.PREPARE_COMMIT
    return EndMarker(decided.producer_id, decided.epoch, coordinator_epoch, commits, decided.client_version)


class MarkerWriter:
    """Writes markers to partitions of all topics."""

    def __init__(self, cluster: Cluster, groups: GroupCoordinator, log_manager: LogManager) -> None:
        self._cluster = cluster
        self._groups = groups
        self._log_manager = log_manager

    def lacks_index(self, partitions: Iterable[TopicPartition]) -> bool:
        """Index some batches of partitions on disk that have many without an index; return whether there were any."""
        if self._log_manager.unindexed:
            for _ in self._log_manager.index_steps({topic for topic, _ in partitions}):
                return True
        return False

    def write(
        self, partitions: Collection[TopicPartition], marker: EndMarker, now_ms: int, unwritten: list[TopicPartition]
    ) -> None:
        """Write a marker to each of these partitions.

        ``unwritten``: gets the partitions that have no leader, or whose log cannot write, by the time that the log has
        settled everything appended so far.
        """
        appends: list[tuple[TopicPartition, Append]] = []
        for of in partitions:
            append = self._write(of, marker, now_ms, unwritten)
            if append is not None:
                appends.append((of, append))

        if self._log_manager.directory is None:
            return  # in memory, writes do not fail

        def check() -> NoResponse:
            unwritten.extend(of for of, append in appends if append.error)
            return NO_RESPONSE

        self._groups.log.then(check)

    def _write(
        self, of: TopicPartition, marker: EndMarker, now_ms: int, unwritten: list[TopicPartition]
    ) -> Append | None:
        """Write a marker; return the append if it has its error later."""
        name, index = of
        topic = self._cluster.topics.get(name)
        partition = topic and topic.partition(index)
        if topic is None or not partition:
            return None  # deleted: there are no records to decide on
        if partition.leader == NO_LEADER:
            unwritten.append(of)
            return None
        if name == OFFSETS_TOPIC:
            from kproto_server.coordinator.transactional_offsets import end_offsets  # not at the start

            end_offsets(self._groups, index, marker, now_ms, lambda error: unwritten.append(of) if error else None)
            return None
        written = write_marker(self._log_manager, topic, partition, marker, now_ms)
        if not isinstance(written, ErrorCode):
            return written
        # As in Kafka, a marker that is refused for its epoch has nothing to end.
        if written is ErrorCode.KAFKA_STORAGE_ERROR:
            unwritten.append(of)
        return None
