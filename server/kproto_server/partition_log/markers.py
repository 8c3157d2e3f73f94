"""Append the markers that end transactions; a transaction coordinator calls it for each partition of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.records.control import ControlType, build_end_marker

if TYPE_CHECKING:
    from kproto_server.partition_log.partition_data import Append, PartitionData


def append_marker(
    data: PartitionData,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    commit: bool,
    leader_epoch: int,
    now_ms: int,
) -> Append | ErrorCode:
    """Append the marker that ends a producer's transaction in a partition, or return why it is refused.

    As in Kafka, a partition without an open transaction of the producer gets the marker, too. The epoch of the marker
    becomes that of the producer. With a data directory, the append has its error when the log has written the batch:
    ``coordinator.log.then`` runs a function at that time.

    Raises:
        OSError: the log cannot be read, or cannot begin the leader epoch.
    """
    producers = data.producers
    error = producers.check_marker(producer_id, producer_epoch, coordinator_epoch)
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
    )
    append = data.append(batch, 0, now_ms, leader_epoch, producer_id)
    if not append.error:
        producers.add_marker(producer_id, producer_epoch, coordinator_epoch, now_ms)
    return append
