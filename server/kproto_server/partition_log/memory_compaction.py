"""Compaction of records in memory: of every key the newest record stays, with the offset that it has (LF-70).

The same as `storage.compaction` does with files, without what only files need: nothing here survives a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.record_batch import build_record_batch, read_record_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto.records.record import Record


def compacted(batches: Sequence[bytes], delete_before_ms: int) -> list[bytes]:
    """Return what is left of batches; tombstones that are older than a time go, too."""
    newest: dict[bytes | None, int] = {}
    opened = [read_record_batch(encoded, check_crc=False)[0] for encoded in batches]
    for batch in opened:
        newest.update((record.key, record.offset) for record in batch.records())

    def stays(record: Record) -> bool:
        is_newest = record.key is None or newest[record.key] == record.offset
        return is_newest and (record.value is not None or record.timestamp >= delete_before_ms)

    left = []
    for encoded, batch in zip(batches, opened, strict=True):
        records = batch.records()
        kept = [record for record in records if stays(record)]
        header = batch.header
        if len(kept) == len(records):
            left.append(encoded)
        elif kept:
            left.append(
                build_record_batch(
                    kept,
                    base_offset=header.base_offset,
                    last_offset=batch.last_offset,
                    base_timestamp=header.base_timestamp,
                    partition_leader_epoch=header.partition_leader_epoch,
                    producer_id=header.producer_id,
                    producer_epoch=header.producer_epoch,
                    base_sequence=header.base_sequence,
                    compression=batch.compression,
                    flags=header.attributes & ~0b111,
                )
            )
    return left
