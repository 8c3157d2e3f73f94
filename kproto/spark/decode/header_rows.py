"""Rows of `LOG_BATCHES`: batches of any topic, told by their headers alone.

Contents and checksums are not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kproto.records.compression import COMPRESSION_MASK, Compression
from kproto.records.record_batch import CONTROL, HEADER_SIZE, MAGIC, NO_PRODUCER_ID, TRANSACTIONAL
from kproto.spark.decode.batch_table import (
    ATTRIBUTES_AT,
    COUNT_AT,
    LAST_DELTA_AT,
    LEGACY_ATTRIBUTES_AT,
    MAGIC_AT,
    MAX_TIME_AT,
    PRODUCER_AT,
)
from kproto.spark.decode.commit_columns import moments, unless
from kproto.spark.decode.errors import BadBatch, BadCompression, BadOffset, Damaged, UnknownMagic
from kproto.spark.decode.octets import Octets
from kproto.spark.decode.record_table import LEGACY_TIME_AT
from kproto.spark.schemas import LOG_BATCHES

if TYPE_CHECKING:
    from kproto.spark.decode.blocks import Block
    from kproto.spark.decode.octets import Flags, Ints

CODECS = tuple(codec.name.lower() for codec in Compression)


def header_rows(
    block: Block, topic: str, partition: int | None, start_offset: int, end_offset: int | None
) -> pa.RecordBatch:
    """Return a row for each batch that ends in the window: at ``start_offset`` or behind, before ``end_offset``.

    Raises:
        Damaged: a magic, size, count, offset or compression can't be.
    """
    octets = Octets(block.data)
    starts, ends = np.array(block.starts, np.int64), np.array(block.ends(), np.int64)
    magic = octets.uint8(starts + MAGIC_AT)
    _refuse(block, starts, magic > MAGIC, UnknownMagic, "a magic that does not exist")
    is_new = magic == MAGIC
    _refuse(block, starts, is_new & (ends - starts < HEADER_SIZE), BadBatch, "no room for a header")
    attributes = np.where(is_new, octets.int16(starts + ATTRIBUTES_AT), octets.uint8(starts + LEGACY_ATTRIBUTES_AT))
    codec = attributes & COMPRESSION_MASK
    _refuse(block, starts, codec > Compression.ZSTD, BadCompression, "a compression that does not exist")
    first = octets.int64(starts)
    last = first + np.where(is_new, octets.int32(octets.within(starts + LAST_DELTA_AT)), 0)
    count = np.where(is_new, octets.int32(octets.within(starts + COUNT_AT)), 1)
    _refuse(block, starts, (count < 0) | (last < first), BadBatch, "negative counts")
    before = np.concatenate(([block.next_offset - 1], last[:-1]))
    _refuse(block, starts, (first <= before) | (last > block.offset_max), BadOffset, "its offsets can't be here")
    wrapped = ~is_new & (codec != 0)
    times = octets.int64(octets.within(np.where(is_new, starts + MAX_TIME_AT, starts + LEGACY_TIME_AT)))
    producer = np.where(is_new, octets.int64(octets.within(starts + PRODUCER_AT)), NO_PRODUCER_ID)
    columns = [
        pa.repeat(topic, len(starts)),
        pa.repeat(pa.scalar(partition, pa.int32()), len(starts)),
        unless(wrapped, first, pa.int64()),
        pa.array(last),
        moments(times, magic == 0),
        pa.array(ends - starts),
        pa.array(CODECS).take(pa.array(codec)),
        unless(wrapped, count, pa.int32()),
        pa.array(magic.astype(np.int16)),
        pa.array(is_new & (attributes & CONTROL != 0)),
        unless(producer == NO_PRODUCER_ID, producer, pa.int64()),
        pa.array(is_new & (attributes & TRANSACTIONAL != 0)),
    ]
    rows = pa.RecordBatch.from_arrays(columns, schema=LOG_BATCHES.arrow())
    inside = last >= start_offset
    if end_offset is not None:
        inside &= last < end_offset
    return rows if inside.all() else rows.filter(pa.array(inside))


def _refuse(block: Block, starts: Ints, bad: Flags, kind: type[Damaged], reason: str) -> None:
    if bad.any():
        place = int(starts[int(bad.argmax())])
        raise kind(block.file, block.position + place, None, reason)
