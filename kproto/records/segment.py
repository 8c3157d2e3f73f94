"""The end of a segment: limits of its batches, and how to distinguish a torn batch from damage (LF-50, LF-62).

Pure functions; `kproto.logs.blocks` and the broker's recovery read the files.
"""

from __future__ import annotations

import re

from kproto.errors import DecodeError
from kproto.framing import FRAME_SIZE_MAX
from kproto.records.batch_header import CHECKED_FROM, HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_POSITION, SIZE_POSITION
from kproto.records.batches import SIZE_MIN, batch_size, read_batch, stored_crc
from kproto.records.checksum import crc32c

BATCH_SIZE_MAX = FRAME_SIZE_MAX
"""Bytes: a broker receives a batch in one request. A corrupt size must not make a reader load a whole segment."""
RELATIVE_OFFSET_MAX = 2**31 - 1
"""Offsets in a segment's indexes are int32, relative to the base offset in its name (LF-56)."""


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
    decides where everything else of a batch is, and no checksum covers it.
    """
    if len(rest) >= HEADER_SIZE and rest[MAGIC_POSITION] == MAGIC and crc32c(rest[CHECKED_FROM:]) == stored_crc(rest):
        return 0
    # Candidates: the first half of the expected offset, a size whose first byte is that of BATCH_SIZE_MAX or less, and
    # a known magic.
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
