"""A segment of a log, read from slices of its bytes: one batch after the other, and each one's place.

Theory of operation. A segment is batches back to back (LF-50), and it may be larger than memory. Whoever has the file
feeds slices of any size; what is kept is the batch that is not whole yet. What is left when the slices end is the
beginning of a batch that was never written to its end (LF-62), or something that is no batch: `torn_beginning` tells.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kproto.errors import DecodeError
from kproto.framing import FRAME_SIZE_MAX
from kproto.records.batches import LOG_OVERHEAD, MAGIC_POSITION, SIZE_MIN, SIZE_POSITION, Batch, batch_end, read_batch
from kproto.records.checksum import crc32c
from kproto.records.record_batch import CHECKED_FROM, HEADER_SIZE, MAGIC

BATCH_SIZE_MAX = FRAME_SIZE_MAX
"""Octets: a batch comes to a broker in one request. A flipped size must not make a reader take in a whole segment."""
RELATIVE_OFFSET_MAX = 2**31 - 1
"""Offsets in a segment's indexes are int32, counted from its name (LF-56)."""


class PlacedBatch(NamedTuple):
    """A batch, and where in its segment it begins."""

    position: int
    batch: Batch

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.position + self.batch.size


class SegmentReader:
    """Makes batches of slices; the positions of errors count from the segment's beginning."""

    def __init__(self, *, check_crc: bool = True) -> None:
        self._check_crc = check_crc
        self._data = b""
        self._start = 0
        self._origin = 0
        """Where in the segment ``_data`` begins."""

    @property
    def position(self) -> int:
        """Where in the segment the next batch begins."""
        return self._origin + self._start

    @property
    def rest(self) -> bytes:
        """What was fed and is no whole batch."""
        return self._data[self._start :]

    @property
    def missing(self) -> int:
        """Octets that the next batch lacks, as far as one can tell: at least 1."""
        held = len(self._data) - self._start
        if held < LOG_OVERHEAD:
            return LOG_OVERHEAD - held
        return max(1, LOG_OVERHEAD + self._announced() - held)

    def feed(self, data: bytes) -> None:
        """Take the next slice."""
        self._origin += self._start
        self._data = self._data[self._start :] + data
        self._start = 0

    def next_batch(self) -> PlacedBatch | None:
        """Return the next batch, or None if it is not whole yet.

        Raises:
            CorruptBatch: the checksum is not that of the content.
            DecodeError: an unknown magic, or lengths and counts that can't be. `position` is still the batch's.
        """
        try:
            if len(self._data) - self._start >= LOG_OVERHEAD and self._announced() > BATCH_SIZE_MAX:
                reason = f"size {self._announced()}, {BATCH_SIZE_MAX} is the most"
                raise DecodeError("batch", self._start + SIZE_POSITION, reason)
            if batch_end(self._data, self._start) is None:
                return None
            found = read_batch(self._data, self._start, check_crc=self._check_crc)
        except DecodeError as error:
            raise type(error)(error.path, self._origin + error.position, error.reason) from None
        assert found is not None, "the batch is whole"
        placed = PlacedBatch(self.position, found[0])
        self._start = found[1]
        return placed

    def _announced(self) -> int:
        start = self._start + SIZE_POSITION
        return int.from_bytes(self._data[start : start + 4], "big", signed=True)


def torn_beginning(rest: bytes, base_offset: int, next_offset: int) -> bool:
    """Tell whether a segment's last octets can be the beginning of its next batch.

    ``base_offset`` is the segment's, ``next_offset`` the least that the batch can have. A few octets are enough to
    tell a torn write from foreign ones: offsets begin with those of the segment's.
    """
    head = rest[:SIZE_POSITION]
    absent = SIZE_POSITION - len(head)
    least, most = (int.from_bytes(head + filler * absent, "big") for filler in (b"\0", b"\xff"))
    if most < next_offset or least > base_offset + RELATIVE_OFFSET_MAX:
        return False
    if len(rest) >= LOG_OVERHEAD:
        size = int.from_bytes(rest[SIZE_POSITION:LOG_OVERHEAD], "big", signed=True)
        if not SIZE_MIN <= size <= BATCH_SIZE_MAX:
            return False
    return len(rest) <= MAGIC_POSITION or rest[MAGIC_POSITION] <= MAGIC


def whole_batch_within(rest: bytes, next_offset: int) -> int | None:
    """Return where a whole batch begins in what looks like the beginning of one; None: nowhere.

    A torn write has nothing behind it. Where a batch follows, or the content is complete, the announced size is wrong:
    it is the one part of a batch of magic 2 that decides over the others and that no checksum covers.
    """
    if len(rest) >= HEADER_SIZE and rest[MAGIC_POSITION] == MAGIC:
        crc = int.from_bytes(rest[CHECKED_FROM - 4 : CHECKED_FROM], "big")
        if crc32c(rest[CHECKED_FROM:]) == crc:
            return 0
    high = re.escape((next_offset >> 32).to_bytes(4, "big"))
    for found in re.finditer(rb"(?s)(?=%s.{4}[\0-\6].{7}[\0-\2])" % high, rest):
        if found.start() > 0 and _is_batch(rest, found.start(), next_offset):
            return found.start()
    return None


def _is_batch(data: bytes, position: int, next_offset: int) -> bool:
    try:
        found = read_batch(data, position)
    except DecodeError:
        return False
    return found is not None and found[0].last_offset >= next_offset
