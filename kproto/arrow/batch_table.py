"""The headers of a block's batches as columns, with the checks of the reference decoder (LF-1, LF-2, LF-4).

The header of magic 2 has its fields at fixed positions, so a field of all batches is one gather at ``starts +
position``. Message sets (magic 0 and 1) share the first 17 bytes with it and lack most other fields; columns give them
the values that a batch of magic 2 without the feature has: no producer, no transaction.
"""

from __future__ import annotations

import copy
import zlib
from typing import TYPE_CHECKING

import numpy as np

from kproto.arrow.buffer import Buffer, require
from kproto.records import message_set
from kproto.records.batch_header import (
    APPEND_TIME,
    CHECKED_FROM,
    CONTROL,
    CRC_POSITION,
    HEADER_SIZE,
    MAGIC,
    MAGIC_POSITION,
    TRANSACTIONAL,
    position_of,
)
from kproto.records.checksum import crc32c
from kproto.records.compression import COMPRESSION_MASK, Compression

if TYPE_CHECKING:
    from kproto.arrow.buffer import Flags, Ints
    from kproto.logs.blocks import Block

ATTRIBUTES_AT, LAST_DELTA_AT = position_of("attributes"), position_of("last_offset_delta")
BASE_TIME_AT, MAX_TIME_AT = position_of("base_timestamp"), position_of("max_timestamp")
PRODUCER_AT, COUNT_AT = position_of("producer_id"), position_of("record_count")
COLUMNS = ("starts", "ends", "magic", "first", "last", "is_new", "attributes", "codec", "counts")
SAFE_OFFSET_MAX = 2**63 - 2**31
"""An int32 delta can be added to a lower offset without overflow."""


class BatchTable:
    """Columns of the batches that end at ``start_offset`` or later, one element per batch."""

    def __init__(self, block: Block, start_offset: int) -> None:
        """Read the columns.

        Raises:
            UnusualBlock: a magic, size, count, compression or offset is impossible.
        """
        buffer = Buffer(block.data)
        self.buffer: Buffer = buffer
        starts, ends = np.array(block.starts, np.int64), np.array(block.ends(), np.int64)
        magic = buffer.uint8(starts + MAGIC_POSITION)
        require(magic <= MAGIC)
        first = buffer.int64(starts)
        # Clamped: the smallest message set ends before this field would.
        delta = np.where(magic == MAGIC, buffer.int32(buffer.clamp(starts + LAST_DELTA_AT)), 0)
        require(first < SAFE_OFFSET_MAX)
        wanted = first + delta >= start_offset
        if not wanted.all():
            starts, ends, magic, first, delta = (column[wanted] for column in (starts, ends, magic, first, delta))
        self.starts: Ints = starts
        self.ends: Ints = ends
        self.magic: Ints = magic
        self.first: Ints = first
        """Base offsets; of message sets, the offset of the last message."""
        self.last: Ints = first + delta
        require(delta >= 0)
        require(self.last <= block.offset_max)
        # Each batch begins after the one before it: compare with the last offsets, shifted by one batch.
        require(self.first >= np.concatenate(([block.next_offset], self.last + 1))[:-1])
        self.is_new: Flags = self.magic == MAGIC
        """Whether the batch has magic 2."""
        self.attributes: Ints = self._attributes()
        self.codec: Ints = self.attributes & COMPRESSION_MASK
        require(self.codec <= Compression.ZSTD)
        self.counts: Ints = self._counts()

    def __len__(self) -> int:
        return len(self.starts)

    def at(self, selected: Ints | Flags) -> BatchTable:
        """Return the batches with these indexes, or with a flag."""
        found = copy.copy(self)
        for name in COLUMNS:
            setattr(found, name, getattr(self, name)[selected])
        return found

    def _attributes(self) -> Ints:
        if self.is_new.all():
            return self.buffer.int16(self.starts + ATTRIBUTES_AT)
        old = self.buffer.uint8(self.starts + message_set.ATTRIBUTES_POSITION) & COMPRESSION_MASK
        return np.where(self.is_new, self.buffer.int16(self.buffer.clamp(self.starts + ATTRIBUTES_AT)), old)

    def _counts(self) -> Ints:
        """Return the record counts; 1 for a message set, as only the content of a wrapper gives its count."""
        new = self.starts[self.is_new]
        require(self.ends[self.is_new] - new >= HEADER_SIZE)
        counts = np.ones(len(self), np.int64)
        counts[self.is_new] = self.buffer.int32(new + COUNT_AT)
        require(counts >= 0)
        return counts

    def check_sums(self) -> None:
        """Compare the checksums with the content.

        Raises:
            UnusualBlock: one differs.
        """
        buffer, data = self.buffer, self.buffer.data
        for flags, crc_at, checked_from, crc in (
            (self.is_new, CRC_POSITION, CHECKED_FROM, crc32c),
            (~self.is_new, message_set.CRC_POSITION, message_set.CHECKED_FROM, zlib.crc32),
        ):
            starts, ends = self.starts[flags], self.ends[flags]
            checked = zip((starts + checked_from).tolist(), ends.tolist(), strict=True)
            sums = [crc(data[start:end]) for start, end in checked]
            require(np.array(sums, np.int64) == buffer.uint32(starts + crc_at))

    def _int64_of_new(self, position: int, absent: int) -> Ints:
        """Return an int64 field of the header of magic 2; ``absent`` for message sets."""
        if self.is_new.all():
            return self.buffer.int64(self.starts + position)
        found = np.full(len(self), absent, np.int64)
        found[self.is_new] = self.buffer.int64(self.starts[self.is_new] + position)
        return found

    @property
    def base_timestamps(self) -> Ints:
        return self._int64_of_new(BASE_TIME_AT, 0)

    @property
    def max_timestamps(self) -> Ints:
        """Highest timestamps; in magic 1 that of the outer message, in magic 0 meaningless."""
        positions = np.where(self.is_new, MAX_TIME_AT, message_set.TIMESTAMP_POSITION)
        return self.buffer.int64(self.buffer.clamp(self.starts + positions))

    @property
    def producer_ids(self) -> Ints:
        return self._int64_of_new(PRODUCER_AT, -1)

    def _has(self, flag: int) -> Flags:
        flags: Flags = self.is_new & (self.attributes & flag != 0)
        return flags

    @property
    def append_time(self) -> Flags:
        return self._has(APPEND_TIME)

    @property
    def transactional(self) -> Flags:
        return self._has(TRANSACTIONAL)

    @property
    def control(self) -> Flags:
        return self._has(CONTROL)
