"""Cutting a segment's file into blocks of whole batches, and judging what stands behind the last one.

What may stand there (LF-61, LF-62). A broker writes a batch in one go, so a crash leaves at most the beginning of one,
at the end of the newest segment; recovery drops it without a word. Such a torn tail is no damage, and neither are zeros
up to the end, which is what a preallocated file has there: both are counted. Everything else is damage.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.batches import LOG_OVERHEAD, MAGIC_POSITION, SIZE_MIN, SIZE_POSITION
from kproto.records.record_batch import MAGIC
from kproto.records.segment import BATCH_SIZE_MAX, RELATIVE_OFFSET_MAX, torn_beginning, whole_batch_within
from kproto.spark.decode.errors import BadSize, Damaged, Truncated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

BLOCK_SIZE = 2 << 20
"""Bytes read at a time: columns of a block's records stay in the processor's cache. A larger batch makes it larger."""
PAD = bytes(32)
"""Stands behind each block, so that reading the widest field at any place within it stays within the buffer."""
LAST_OFFSET_DELTA = 23

_offset_at = Struct(">q").unpack_from
_size_at = Struct(">i").unpack_from


class Block(NamedTuple):
    """Whole batches, as they stand in a file."""

    file: str
    """How messages name it."""
    position: int
    """Where in the file it begins."""
    data: bytes
    """The batches, then `PAD`."""
    starts: list[int]
    """Where in ``data`` each batch begins."""
    size: int
    """Bytes of the batches."""
    next_offset: int
    """The least offset that the first of them can have."""
    offset_max: int
    """The greatest offset that any of them can have."""

    def ends(self) -> list[int]:
        """Return where in ``data`` each batch ends."""
        return [*self.starts[1:], self.size]


def first_field(data: bytes, start: int) -> int:
    """Return the offset that stands first in a batch: the first one of magic 2, the last one of a message set."""
    offset: int = _offset_at(data, start)[0]
    return offset


def last_offset(data: bytes, start: int) -> int:
    """Return the last offset of a batch of any magic."""
    offset = first_field(data, start)
    if data[start + MAGIC_POSITION] != MAGIC:
        return offset
    delta: int = _size_at(data, start + LAST_OFFSET_DELTA)[0]
    return offset + delta


class SegmentBlocks:
    """One pass over the batches of a segment, or of a part of it; then look at `torn_size` and `position`.

    ``next_offset`` is the least that the first batch can have. Reading ends before the first batch of ``end_offset``
    or above (of message sets, with the first: what they hold below it only their content tells).
    """

    def __init__(
        self,
        file: BinaryIO,
        label: str,
        *,
        base_offset: int,
        is_newest: bool,
        position: int = 0,
        next_offset: int | None = None,
        end_offset: int | None = None,
    ) -> None:
        self.position: int = position
        """Where the next batch begins."""
        self.torn_size: int = 0
        """Bytes of a torn tail, or of zeros that were never written."""
        self._file = file
        self._label = label
        self._base_offset = base_offset
        self._next_offset = base_offset if next_offset is None else next_offset
        self._is_newest = is_newest
        self._end_offset = end_offset

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks.

        Raises:
            Damaged: while iterating: what follows is neither a batch nor a torn tail.
            OSError: while iterating: the file can't be read.
        """
        self._file.seek(self.position)
        rest = b""
        wanted = BLOCK_SIZE
        while data := self._file.read(wanted):
            rest += data
            block, end, size = self._block(rest)
            if block is not None:
                block, is_last = self._within_window(block)
                self.position += end
                if block.starts:
                    self._next_offset = last_offset(block.data, block.starts[-1]) + 1
                    yield block
                if is_last:
                    return
            rest = rest[end:]
            if size is not None and not SIZE_MIN <= size <= BATCH_SIZE_MAX:
                self._refuse_size(size)
                return
            wanted = BLOCK_SIZE if size is None else max(BLOCK_SIZE, LOG_OVERHEAD + size - len(rest))
        if rest:
            self._judge(rest)

    def _block(self, data: bytes) -> tuple[Block | None, int, int | None]:
        """Return ``(the whole batches, their end, size that the next batch announces)``; None: not there."""
        starts: list[int] = []
        position, limit, size = 0, len(data), None
        while position + LOG_OVERHEAD <= limit:
            (size,) = _size_at(data, position + SIZE_POSITION)
            if not SIZE_MIN <= size <= BATCH_SIZE_MAX or position + LOG_OVERHEAD + size > limit:
                break
            starts.append(position)
            position += LOG_OVERHEAD + size
        else:
            size = None
        if not starts:
            return None, 0, size
        offset_max = self._base_offset + RELATIVE_OFFSET_MAX
        block = Block(
            self._label, self.position, data[:position] + PAD, starts, position, self._next_offset, offset_max
        )
        return block, position, size

    def _within_window(self, block: Block) -> tuple[Block, bool]:
        """Return what is below the end offset, and whether more is not to be read."""
        end = self._end_offset
        if end is None or first_field(block.data, block.starts[-1]) < end:
            return block, False
        count = sum(first_field(block.data, start) < end for start in block.starts)
        if block.data[block.starts[count] + MAGIC_POSITION] < MAGIC:
            count += 1
        kept = block.starts[:count]
        size = block.size if count == len(block.starts) else block.starts[count]
        return block._replace(starts=kept, size=size), True

    def _refuse_size(self, size: int) -> None:
        if not self._ends_in_zeros():
            reason = f"size {size}, {SIZE_MIN} is the least and {BATCH_SIZE_MAX} the most"
            raise self._damage(BadSize, reason)

    def _judge(self, rest: bytes) -> None:
        if self._ends_in_zeros():
            return
        if not self._is_newest:
            raise self._damage(Truncated, f"{len(rest)} bytes after the last batch, and this is not the newest segment")
        if not torn_beginning(rest, self._base_offset, self._next_offset):
            raise self._damage(Truncated, f"{len(rest)} trailing bytes that begin no batch")
        within = whole_batch_within(rest, self._next_offset)
        if within is not None:
            place = self.position + within
            raise self._damage(
                BadSize, f"it announces more bytes than there are, but a whole one stands at byte {place}"
            )
        self.torn_size = len(rest)

    def _ends_in_zeros(self) -> bool:
        """Tell whether the newest segment is all zeros from here, and note it."""
        if not self._is_newest:
            return False
        self._file.seek(self.position)
        size = 0
        while data := self._file.read(BLOCK_SIZE):
            if data.count(0) != len(data):
                return False
            size += len(data)
        self.torn_size = size
        return True

    def _damage(self, kind: type[Damaged], reason: str) -> Damaged:
        return kind(self._label, self.position, self._next_offset, reason)
