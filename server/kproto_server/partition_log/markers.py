"""Append the markers that end transactions; a transaction coordinator calls it for each partition of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.records.control import ControlType, build_end_marker

if TYPE_CHECKING:
    from kproto_server.partition_log.partition_data import Append, PartitionData

EPOCH_RAISED_SINCE = 2
"""The version of the feature ``transaction.version`` from which on each transaction has its own epoch (KIP-890)."""


def append_marker(
    data: PartitionData,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    commit: bool,
    transaction_version: int = 0,
    leader_epoch: int,
    has_append_time: bool = False,
    now_ms: int,
) -> Append | ErrorCode:
    """Append the marker that ends a producer's transaction in a partition, or return why it is refused.

    As in Kafka, a partition without an open transaction of the producer gets the marker, too. The epoch of the marker
    becomes that of the producer; from ``transaction_version`` 2 on, it must be a new one if it ends a transaction. With
    a data directory, the append has its error when the log has written the batch: ``coordinator.log.then`` runs a
    function at that time.

    Raises:
        OSError: the log cannot be read, or cannot begin the leader epoch.
    """
    if producer_epoch < 0:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    producers = data.producers
    raises_epoch = transaction_version >= EPOCH_RAISED_SINCE
    error = producers.check_marker(producer_id, producer_epoch, coordinator_epoch, raises_epoch=raises_epoch)
    if error:
        return error
    batch = build_end_marker(
        ControlType.COMMIT if commit else ControlType.ABORT,
        offset=0,
        timestamp=now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        partition_leader_epoch=leader_epoch,
        has_append_time=has_append_time,
    )
    append = data.append(batch, 0, now_ms, leader_epoch, producer_id)
    if not append.error:
        producers.add_marker(producer_id, producer_epoch, coordinator_epoch, now_ms)
    return append
