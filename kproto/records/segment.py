"""The end of a segment: limits of its batches, and how to tell a torn batch from damage (LF-50, LF-62).

Pure functions; `kproto.logs.blocks` and the broker's recovery read the files.
"""

from __future__ import annotations

import re

from kproto.errors import DecodeError
from kproto.framing import FRAME_SIZE_MAX
from kproto.records.batches import LOG_OVERHEAD, MAGIC_POSITION, SIZE_MIN, SIZE_POSITION, read_batch
from kproto.records.checksum import crc32c
from kproto.records.record_batch import CHECKED_FROM, HEADER_SIZE, MAGIC

BATCH_SIZE_MAX = FRAME_SIZE_MAX
"""Octets: a batch comes to a broker in one request. A flipped size must not make a reader take in a whole segment."""
RELATIVE_OFFSET_MAX = 2**31 - 1
"""Offsets in a segment's indexes are int32, counted from its name (LF-56)."""


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
