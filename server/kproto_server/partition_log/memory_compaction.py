"""Compaction of records in memory: the newest record of each key is retained, with its offset (LF-70).

`storage.compaction` does the same with files. This version needs no crash safety.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from kproto.errors import MissingPackage
from kproto.records.compression import COMPRESSION_MASK
from kproto_server.partition_log.precheck import ATTRIBUTES_POSITION
from kproto_server.storage.retained_records import RetainedRecords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.partition_log.partition_data import PartitionData

STEP_BATCHES = 100
"""Batches of one record that are read in one step: 1 ms. A compressed batch ends a step: it may have MiBs."""
REPLACED_BATCHES = 100_000
"""Batches that are replaced in one step: 5 ms."""


def compaction(data: PartitionData, end_offset: int, now_ms: int, delete_retention_ms: int) -> Iterator[None]:
    """Compact the batches below an offset, in steps.

    The last steps replace the batches, the oldest first: a record goes before the newer one of its key that replaces it
    can be compacted. Between two steps, records may be appended and deleted. If the log was truncated, nothing more is
    replaced: the newest record of a key may be gone.
    """
    retained = RetainedRecords(now_ms, delete_retention_ms)
    last_offsets, batches = data.columns_below(end_offset)
    for count, batch in enumerate(batches, 1):
        with suppress(MissingPackage):
            yield from retained.add_to_offset_map(batch)
        if _ends_step(count, batch):
            yield
    changed: dict[int, tuple[bytes, bytes]] = {}
    unstable = retained.first_unstable_offset
    for count, (last_offset, batch) in enumerate(zip(last_offsets, batches, strict=True), 1):
        if unstable is not None and last_offset >= unstable:
            break
        with suppress(MissingPackage):
            part = yield from retained.filter_batch(batch)
            if part is not None:
                changed[last_offset] = (batch, part)
        if _ends_step(count, batch):
            yield
    left = iter(changed.items())
    while part_of_changed := dict(islice(left, REPLACED_BATCHES)):
        if data.read(last_offsets[-1], 0, min_one_batch=True) != batches[-1]:
            break
        data.replace(part_of_changed)
        yield


def _ends_step(count: int, batch: bytes) -> bool:
    return not count % STEP_BATCHES or bool(batch[ATTRIBUTES_POSITION] & COMPRESSION_MASK)
