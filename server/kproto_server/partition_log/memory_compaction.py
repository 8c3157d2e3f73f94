"""Compaction of records in memory: the newest record of each key is retained, with its offset (LF-70).

`storage.compaction` does the same with files. This version needs no crash safety.
"""

from __future__ import annotations

from contextlib import suppress
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


def compaction(data: PartitionData, end_offset: int, now_ms: int, delete_retention_ms: int) -> Iterator[None]:
    """Compact the batches below an offset, in steps; the last step replaces the batches.

    Between two steps, records may be appended and deleted. If the log was truncated, nothing is replaced: the newest
    record of a key may be gone.
    """
    retained = RetainedRecords(now_ms, delete_retention_ms)
    batches = data.batches_below(end_offset)
    for count, (_, batch) in enumerate(batches, 1):
        with suppress(MissingPackage):
            yield from retained.add_to_offset_map(batch)
        if _ends_step(count, batch):
            yield
    changed: dict[int, tuple[bytes, bytes]] = {}
    unstable = retained.first_unstable_offset
    for count, (last_offset, batch) in enumerate(batches, 1):
        if unstable is not None and last_offset >= unstable:
            break
        with suppress(MissingPackage):
            part = yield from retained.filter_batch(batch)
            if part is not None:
                changed[last_offset] = (batch, part)
        if _ends_step(count, batch):
            yield
    if changed:
        last_offset, batch = batches[-1]
        if data.read(last_offset, 0, min_one_batch=True) == batch:
            data.replace(changed)


def _ends_step(count: int, batch: bytes) -> bool:
    return not count % STEP_BATCHES or bool(batch[ATTRIBUTES_POSITION] & COMPRESSION_MASK)
