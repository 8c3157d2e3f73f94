"""Compaction of records in memory: the newest record of each key is retained, with its offset (LF-70).

`storage.compaction` does the same with files. This version needs no steps and no crash safety.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from kproto.errors import DecodeError, MissingPackage
from kproto.records.compression import COMPRESSION_MASK
from kproto.records.record_batch import build_record_batch, read_record_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto.records.record import Record
    from kproto.records.record_batch import RecordBatch


def compacted(batches: Sequence[bytes], delete_before_ms: int) -> list[bytes]:
    """Return the retained part of batches. Tombstones older than ``delete_before_ms`` are not retained.

    A batch is retained whole if its records cannot be read, or their offsets do not rise.
    """
    newest_offsets: dict[bytes | None, int] = {}
    decoded = [read_record_batch(encoded, check_crc=False)[0] for encoded in batches]
    for batch in decoded:
        newest_offsets.update((record.key, record.offset) for record in _records(batch))

    def is_retained(record: Record) -> bool:
        is_newest = record.key is None or newest_offsets[record.key] == record.offset
        return is_newest and (record.value is not None or record.timestamp >= delete_before_ms)

    result = []
    for encoded, batch in zip(batches, decoded, strict=True):
        records = _records(batch)
        retained = [record for record in records if is_retained(record)]
        header = batch.header
        if len(retained) == len(records):
            result.append(encoded)
        elif retained:
            result.append(
                build_record_batch(
                    retained,
                    base_offset=header.base_offset,
                    last_offset=batch.last_offset,
                    base_timestamp=header.base_timestamp,
                    partition_leader_epoch=header.partition_leader_epoch,
                    producer_id=header.producer_id,
                    producer_epoch=header.producer_epoch,
                    base_sequence=header.base_sequence,
                    compression=batch.compression,
                    flags=header.attributes & ~COMPRESSION_MASK,
                )
            )
    return result


def _records(batch: RecordBatch) -> list[Record]:
    """Return the records of a batch; none if it is retained whole."""
    try:
        records = batch.records()
    except (DecodeError, MissingPackage):
        return []
    offsets = [batch.base_offset - 1, *(record.offset for record in records), batch.last_offset + 1]
    return records if all(after > before for before, after in pairwise(offsets)) else []
