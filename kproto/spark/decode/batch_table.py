"""The headers of a block's batches as columns, checked as the plain decoder checks them (LF-1, LF-2, LF-4)."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from kproto.records.checksum import crc32c
from kproto.records.compression import COMPRESSION_MASK, Compression
from kproto.records.message_set import CHECKED_FROM as LEGACY_CHECKED_FROM
from kproto.records.record_batch import APPEND_TIME, CHECKED_FROM, CONTROL, HEADER_SIZE, MAGIC, TRANSACTIONAL
from kproto.spark.decode.octets import Octets, expect

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kproto.spark.decode.blocks import Block
    from kproto.spark.decode.octets import Flags, Ints

MAGIC_AT, ATTRIBUTES_AT, LAST_DELTA_AT, BASE_TIME_AT, MAX_TIME_AT, PRODUCER_AT, COUNT_AT = 16, 21, 23, 27, 35, 43, 57
CRC_AT, LEGACY_CRC_AT, LEGACY_ATTRIBUTES_AT = 17, 12, 17
SAFE_MAX = 2**62
"""Offsets and times below it can be added to their deltas without overflow."""


class BatchTable:
    """Columns of the batches that have records from ``start_offset`` on; those of magic 2 and others have a mask.

    What message sets lack stands there as for a batch of magic 2 without it: no producer, no transaction.
    """

    def __init__(self, block: Block, start_offset: int) -> None:
        """Read the columns.

        Raises:
            Suspect: a magic, size, count or offset can't be, or a message set is compressed.
        """
        octets = Octets(block.data)
        self.octets: Octets = octets
        starts, ends = np.array(block.starts, np.int64), np.array(block.ends(), np.int64)
        magic = octets.uint8(starts + MAGIC_AT)
        expect(magic <= MAGIC)
        first = octets.int64(starts)
        delta = np.where(magic == MAGIC, octets.int32(octets.within(starts + LAST_DELTA_AT)), 0)
        expect(first < SAFE_MAX)
        wanted = first + delta >= start_offset
        self.starts: Ints = starts[wanted]
        self.ends: Ints = ends[wanted]
        self.magic: Ints = magic[wanted]
        self.first: Ints = first[wanted]
        self.last: Ints = (first + delta)[wanted]
        expect(delta[wanted] >= 0)
        expect(self.last <= block.offset_max)
        expect(self.first >= np.concatenate(([block.next_offset], self.last + 1))[:-1])
        self.is_new: Flags = self.magic == MAGIC
        self.attributes: Ints = self._attributes()
        self.codec: Ints = self.attributes & COMPRESSION_MASK
        expect(self.codec <= np.where(self.is_new, Compression.ZSTD, Compression.NONE))
        self.counts: Ints = self._counts()

    def __len__(self) -> int:
        return len(self.starts)

    def _attributes(self) -> Ints:
        if self.is_new.all():
            return self.octets.int16(self.starts + ATTRIBUTES_AT)
        old = self.octets.uint8(self.starts + LEGACY_ATTRIBUTES_AT) & COMPRESSION_MASK
        return np.where(self.is_new, self.octets.int16(self.octets.within(self.starts + ATTRIBUTES_AT)), old)

    def _counts(self) -> Ints:
        new = self.starts[self.is_new]
        expect(self.ends[self.is_new] - new >= HEADER_SIZE)
        found = np.ones(len(self), np.int64)
        found[self.is_new] = self.octets.int32(new + COUNT_AT)
        expect(found >= 0)
        return found

    def check_sums(self) -> None:
        """Hold the checksums against the content.

        Raises:
            Suspect: one differs.
        """
        octets, data = self.octets, self.octets.data
        for flags, crc_at, checked_from, crc in (
            (self.is_new, CRC_AT, CHECKED_FROM, crc32c),
            (~self.is_new, LEGACY_CRC_AT, LEGACY_CHECKED_FROM, zlib.crc32),
        ):
            starts, ends = self.starts[flags], self.ends[flags]
            places = zip((starts + checked_from).tolist(), ends.tolist(), strict=True)
            sums = [crc(data[start:end]) for start, end in places]
            expect(np.array(sums, np.int64) == octets.uint32(starts + crc_at))

    def _of_new(self, offset: int, absent: int) -> Ints:
        """Gather an int64 of the header of magic 2."""
        if self.is_new.all():
            return self.octets.int64(self.starts + offset)
        found = np.full(len(self), absent, np.int64)
        found[self.is_new] = self.octets.int64(self.starts[self.is_new] + offset)
        return found

    @property
    def base_timestamps(self) -> Ints:
        return self._of_new(BASE_TIME_AT, 0)

    @property
    def max_timestamps(self) -> Ints:
        return self._of_new(MAX_TIME_AT, 0)

    @property
    def producer_ids(self) -> Ints:
        return self._of_new(PRODUCER_AT, -1)

    def has(self, flag: int) -> NDArray[np.bool_]:
        """Tell which batches have a flag of magic 2."""
        flags: Flags = self.is_new & (self.attributes & flag != 0)
        return flags

    @property
    def append_time(self) -> Flags:
        return self.has(APPEND_TIME)

    @property
    def transactional(self) -> Flags:
        return self.has(TRANSACTIONAL)

    @property
    def control(self) -> Flags:
        return self.has(CONTROL)
