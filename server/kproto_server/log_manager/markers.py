"""Append the markers that end transactions; a transaction coordinator calls it for each partition of a transaction."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.records.control import MARKER_SIZE_BYTES, ControlType, build_end_marker
from kproto_server.partition_log.log_config import log_config

if TYPE_CHECKING:
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.partition_log.partition_data import Append, PartitionData

EPOCH_RAISED_SINCE = 2
"""The version of the feature ``transaction.version`` from which on each transaction has its own epoch (KIP-890)."""


class EndMarker(NamedTuple):
    """What the markers of a transaction say; they are equal in all its partitions."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commits: bool
    transaction_version: int = 0
    """The `transaction.version` of the client; WriteTxnMarkers has it from v2 on."""

    @property
    def outcome(self) -> ControlType:
        return ControlType.COMMIT if self.commits else ControlType.ABORT


def write_marker(
    log_manager: LogManager, topic: Topic, partition: Partition, marker: EndMarker, now_ms: int
) -> Append | ErrorCode:
    """Append a marker to a partition, or return why it is refused.

    With a data directory, the append has its error when the log has written the batch: ``coordinator.log.then`` runs a
    function at that time.
    """
    config = log_config(log_manager.settings.of(partition.leader), topic.configs)
    try:
        data = log_manager.data_of(topic, partition)
        append = append_marker(data, marker, partition.leader_epoch, now_ms, has_append_time=config.has_append_time)
    except OSError:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if data.is_in_memory:
        log_manager.wrote_to_memory(MARKER_SIZE_BYTES)
    return append


def append_marker(
    data: PartitionData, marker: EndMarker, leader_epoch: int, now_ms: int, *, has_append_time: bool = False
) -> Append | ErrorCode:
    """Append the marker that ends a producer's transaction in a partition, or return why it is refused.

    As in Kafka, a partition without an open transaction of the producer gets the marker, too. The epoch of the marker
    becomes that of the producer; from ``transaction_version`` 2 on, it must be a new one if it ends a transaction.

    Raises:
        OSError: the log cannot be read, or cannot begin the leader epoch.
    """
    producer_id, producer_epoch, coordinator_epoch, _, transaction_version = marker
    if producer_epoch < 0:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    producers = data.producers
    raises_epoch = transaction_version >= EPOCH_RAISED_SINCE
    error = producers.check_marker(producer_id, producer_epoch, coordinator_epoch, raises_epoch=raises_epoch)
    if error:
        return error
    batch = marker_batch(marker, now_ms, leader_epoch, has_append_time)
    append = data.append(batch, 0, now_ms, leader_epoch, producer_id)
    if not append.error:
        producers.add_marker(producer_id, producer_epoch, coordinator_epoch, now_ms, append.base_offset)
    return append


@lru_cache(maxsize=16)
def marker_batch(marker: EndMarker, timestamp_ms: int, leader_epoch: int, has_append_time: bool = False) -> bytes:
    """Return the batch of a marker. Kept: the partitions of a transaction have equal ones."""
    return build_end_marker(
        marker.outcome,
        offset=0,
        timestamp=timestamp_ms,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        partition_leader_epoch=leader_epoch,
        has_append_time=has_append_time,
    )
