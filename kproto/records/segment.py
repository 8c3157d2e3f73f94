"""The end of a segment: limits of its batches, and how to distinguish a torn batch from damage (LF-50, LF-62).

Pure functions; `kproto.logs.blocks` and the broker's recovery read the files.
"""

from __future__ import annotations

import re

from kproto.errors import DecodeError
from kproto.framing import FRAME_SIZE_MAX
from kproto.records.batch_header import CHECKED_FROM, HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_POSITION, SIZE_POSITION
from kproto.records.batches import SIZE_MIN, batch_end, batch_size, last_offset, read_batch, stored_crc
from kproto.records.checksum import crc32c
from kproto.records.message_set import has_legacy_layout
from kproto.records.record_batch import read_checked_header

BATCH_SIZE_MAX = FRAME_SIZE_MAX
"""Bytes: a broker receives a batch in one request. A corrupt size must not make a reader load a whole segment."""
RELATIVE_OFFSET_MAX = 2**31 - 1
"""Offsets in a segment's indexes are int32, relative to the base offset in its name (LF-56)."""

CHECKS_MAX = 8
"""How many times the bytes of a torn tail the checksums within it may cover."""


def torn_beginning(rest: bytes, base_offset: int, next_offset: int) -> bool:
    """Whether the last bytes of a segment can be the beginning of its next batch.

    ``base_offset`` is the segment's, ``next_offset`` the least offset that the batch can have. A few bytes are enough
    to distinguish a torn write from foreign bytes, because the first bytes of all offsets in a segment are the same.
    """
    # Some bytes of the offset, which comes first, may be missing: compute the range of offsets that they could make.
    offset = rest[:SIZE_POSITION]
    missing = SIZE_POSITION - len(offset)
    least, most = (int.from_bytes(offset + filler * missing, "big") for filler in (b"\0", b"\xff"))
    if most < next_offset or least > base_offset + RELATIVE_OFFSET_MAX:
        return False
    if len(rest) >= LOG_OVERHEAD and not SIZE_MIN <= batch_size(rest) <= BATCH_SIZE_MAX:
        return False
    return len(rest) <= MAGIC_POSITION or rest[MAGIC_POSITION] <= MAGIC


def whole_batch_within(rest: bytes, next_offset: int) -> int | None:
    """Return the position of a whole batch in bytes that look like the beginning of one; None if there is none.

    Nothing follows a torn write. If a batch follows, or the content is complete, the announced size is wrong: the size
    decides where everything else of a batch is, and no checksum covers it. Content that has very many headers of large
    batches counts as torn, because the checksum of each would be computed: `CHECKS_MAX`.
    """
    if len(rest) >= HEADER_SIZE and rest[MAGIC_POSITION] == MAGIC and crc32c(rest[CHECKED_FROM:]) == stored_crc(rest):
        return 0
    # Candidates: the first half of the expected offset, a size from `SIZE_MIN` whose first byte is that of
    # BATCH_SIZE_MAX or less, and a known magic.
    high = re.escape((next_offset >> 32).to_bytes(4, "big"))
    left = CHECKS_MAX * len(rest)
    for found in re.finditer(rb"(?s)(?=%s.{4}(?!\0\0\0[\0-\r])[\0-\6].{7}[\0-\2])" % high, rest):
        position = found.start()
        end = _end_of_batch(rest, position, next_offset) if position > 0 else None
        if end is None:
            continue
        left -= end - position
        if left < 0:
            return None
        if _has_right_checksum(rest[position:end]):
            return position
    return None


def _end_of_batch(data: bytes, position: int, next_offset: int) -> int | None:
    """Return the end of what has the layout of a whole batch and an offset that is not too low; None: it has not.

    The time does not depend on its size.
    """
    try:
        end = batch_end(data, position)
        if end is None:
            return None
        if data[position + MAGIC_POSITION] == MAGIC:
            read_checked_header(data, position, check_crc=False)
        elif not has_legacy_layout(data, position, end):
            return None
    except DecodeError:
        return None
    return end if last_offset(data, position) >= next_offset else None


def _has_right_checksum(data: bytes) -> bool:
    try:
        return read_batch(data) is not None
    except DecodeError:
        return False
