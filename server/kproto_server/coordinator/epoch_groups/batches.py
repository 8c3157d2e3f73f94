"""The records of a change as one batch, which the log has whole or not at all (LF-11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.coordinator import encode_key, encode_value
from kproto.records.record import Record, encode_records
from kproto_server.coordinator.change_log import NO_BATCH
from kproto_server.coordinator.offsets_log.batches import offsets_compression, record_batch
from kproto_server.coordinator.offsets_log.deletions import group_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.records.coordinator import CoordinatorKey, CoordinatorValue
    from kproto_server.coordinator.change_log import Batch
    from kproto_server.coordinator.coordinator import GroupCoordinator

    Pair = tuple[CoordinatorKey, CoordinatorValue | None]
    """Key and value of a record; None: a tombstone."""


def change_batch(
    coordinator: GroupCoordinator, group_id: str, pairs: Iterable[Pair], now_ms: int, *, removes_classic: bool
) -> Batch:
    """Return the batch of a change and the number of its records; `NO_BATCH` if the change writes no record.

    ``removes_classic``: whether it begins with the tombstone of a classic group.

    Raises:
        EncodeError: a name is too long for the format.
        MissingPackage: the compression needs a package that is not installed.
    """
    records = [Record(group_key(group_id), None)] if removes_classic else []
    records += encoded(pairs)
    return batch_of(coordinator, records, now_ms) if records else NO_BATCH


def batch_of(coordinator: GroupCoordinator, records: list[Record], now_ms: int) -> Batch:
    """Return records as a batch, and their number."""
    data = encode_records(_numbered(records), base_timestamp=records[0].timestamp)
    compression = offsets_compression(coordinator.settings.current)
    return (
        record_batch(data, len(records), now_ms, coordinator.behavior.group_base_sequence, compression),
        len(records),
    )


def _numbered(records: list[Record]) -> list[Record]:
    return [record._replace(offset=number) for number, record in enumerate(records)]


def encoded(pairs: Iterable[Pair]) -> list[Record]:
    """Return keys and values as records."""
    return [Record(encode_key(key), None if value is None else encode_value(value, 0)) for key, value in pairs]
