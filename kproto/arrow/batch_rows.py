"""Rows of `LOG_BATCHES`: batches of any topic, from their headers alone. Contents and checksums are not checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kproto.arrow.batch_table import BatchTable
from kproto.arrow.buffer import UnusualBlock
from kproto.arrow.commit_columns import nullable, timestamps
from kproto.arrow.schemas import LOG_BATCHES
from kproto.logs.batches import batch_at
from kproto.logs.errors import BadOffset
from kproto.logs.ranges import RangeBlocks
from kproto.records.batch_header import NO_PRODUCER_ID
from kproto.records.compression import Compression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.errors import CorruptLog
    from kproto.logs.blocks import Block
    from kproto.logs.ranges import OffsetRange

CODECS = tuple(codec.name.lower() for codec in Compression)


def batch_rows(wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """Yield a row for each batch that ends in a range.

    Raises:
        CorruptLog: while iterating: a header is invalid.
        NoLog, OSError: while iterating: as `RangeBlocks`.
    """
    blocks = RangeBlocks(wanted)
    for block in blocks:
        start = max(wanted.start_offset, blocks.next_offset)
        rows = rows_of_block(block, wanted.partition.topic, wanted.partition.number, start, wanted.end_offset)
        if len(rows):
            yield rows


def rows_of_block(
    block: Block, topic: str, partition: int | None, start_offset: int, end_offset: int | None
) -> pa.RecordBatch:
    """Return a row for each batch that ends at ``start_offset`` or later, and before ``end_offset``.

    Raises:
        CorruptLog: a header is invalid.
    """
    try:
        batches = BatchTable(block, start_offset)
    except UnusualBlock:
        raise _damage(block) from None
    is_wrapper = ~batches.is_new & (batches.codec != 0)  # first offset and count are in the compressed content
    producer_ids = batches.producer_ids
    columns = [
        pa.repeat(topic, len(batches)),
        pa.repeat(pa.scalar(partition, pa.int32()), len(batches)),
        nullable(is_wrapper, batches.first, pa.int64()),
        pa.array(batches.last),
        timestamps(batches.max_timestamps, batches.magic == 0),
        pa.array(batches.ends - batches.starts),
        pa.array(CODECS).take(pa.array(batches.codec)),
        nullable(is_wrapper, batches.counts, pa.int32()),
        pa.array(batches.magic.astype(np.int16)),
        pa.array(batches.control),
        nullable(producer_ids == NO_PRODUCER_ID, producer_ids, pa.int64()),
        pa.array(batches.transactional),
    ]
    rows = pa.RecordBatch.from_arrays(columns, schema=LOG_BATCHES.arrow())
    return rows if end_offset is None else rows.filter(pa.array(batches.last < end_offset))


def _damage(block: Block) -> CorruptLog:
    """Repeat the checks of `BatchTable` batch by batch; return or raise the error that names the damage."""
    next_offset = block.next_offset
    for start in block.starts:
        placed = batch_at(block, start, check_crc=False)
        placed.compression()
        placed.check_offsets([], next_offset)
        next_offset = placed.batch.last_offset + 1
    return placed.damage(BadOffset, "the offset is close to the end of int64")
