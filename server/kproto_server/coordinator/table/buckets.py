"""Groups with few entries: a hash table whose buckets are byte arrays.

Theory of operation. A bucket has some groups one after the other, as *blocks*: the group's id and its record. Before
the blocks is the bucket's directory: the number of blocks, one byte of each id's hash, and the size of each block. A
lookup searches the group's hash byte in the directory, adds up the sizes before it, and compares the id. There is no
other index, no object for each group, and no fragmentation: when a block grows, the bytes after it in its bucket move,
some hundred of them.

The table grows by linear hashing: whenever there are more than `GROUPS_PER_BUCKET` groups for each bucket, one bucket
is split in two, each in its turn, so that no operation ever does more than that. The table does not shrink; an empty
bucket is small.

Each bucket also has a minimum commit timestamp: no offset in it that expiration has to check was committed before it.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING
from zlib import crc32

from kproto_server.coordinator.table.column_layout import EXPIRIES
from kproto_server.coordinator.table.records import CHECK_NEVER, head_and_column_flags

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUPS_PER_BUCKET = 20
BLOCKS_MAX = 255
"""Blocks of one bucket, whose number is stored in one byte."""
UNIT = 4
BLOCK_SIZE_MAX = UNIT * 255
"""Sizes are stored in one byte, in units."""
KEY_SIZE_MAX = 255
SCANNED_AT_ONCE = 4096
"""Buckets whose minimum commit timestamps are compared in one step."""

Block = tuple[int, bytearray, int, int, int]
"""The position of a group, valid until the next change in its bucket: the bucket's number, the bucket, the index in the
directory, which begins with 1, and the positions of the block and of the record in the bucket."""

SIZES = [bytes((size,)) for size in range(KEY_SIZE_MAX + 1)]
PADDING = [bytes(-size % UNIT) for size in range(UNIT)]


class Buckets:
    """The groups with few entries. A key is a group id as bytes."""

    __slots__ = ("_buckets", "_mask", "count", "min_commit_ms")

    def __init__(self) -> None:
        self._buckets = [bytearray(1)]
        self._mask = 0
        self.count: int = 0
        """The number of groups."""
        self.min_commit_ms: array[int] = array("q", (CHECK_NEVER,))
        """Minimum commit timestamps by the number of the bucket."""

    def __len__(self) -> int:
        """The number of buckets."""
        return len(self._buckets)

    def number_of(self, hashed: int) -> int:
        """Return the number of the bucket for a key's hash."""
        number = hashed & self._mask
        return number if number < len(self._buckets) else number & self._mask >> 1

    def find(self, key: bytes) -> Block | None:
        """Return the position of a group; None if it is not in the table."""
        hashed = crc32(key)
        number = hashed & self._mask
        if number >= len(self._buckets):
            number &= self._mask >> 1
        bucket = self._buckets[number]
        count = bucket[0]
        hash_byte = hashed >> 24
        index = bucket.find(hash_byte, 1, count + 1)
        while index > 0:
            start = 1 + 2 * count + UNIT * sum(bucket[count + 1 : count + index])
            record_start = start + 1 + bucket[start]
            if bucket[start + 1 : record_start] == key:
                return number, bucket, index, start, record_start
            index = bucket.find(hash_byte, index + 1, count + 1)
        return None

    def add(self, key: bytes, record: bytes) -> bool:
        """Add a group that is not in the table; return False and change nothing if its block would be too large."""
        hashed = crc32(key)
        number = self.number_of(hashed)
        bucket = self._buckets[number]
        size = 1 + len(key) + len(record)
        count = bucket[0]
        if size > BLOCK_SIZE_MAX or len(key) > KEY_SIZE_MAX or count == BLOCKS_MAX:
            return False
        padding = PADDING[size % UNIT]
        bucket[0] = count + 1
        bucket.insert(1 + 2 * count, (size + len(padding)) // UNIT)
        bucket.insert(1 + count, hashed >> 24)
        bucket += b"".join((SIZES[len(key)], key, record, padding))
        self.count += 1
        if self.count > GROUPS_PER_BUCKET * len(self._buckets):
            self._split()
        return True

    def replace(self, block: Block, record: bytes) -> bool:
        """Replace the record of a group; return False and change nothing if its block would be too large."""
        _, bucket, index, start, record_start = block
        size = record_start - start + len(record)
        if size > BLOCK_SIZE_MAX:
            return False
        padding = PADDING[size % UNIT]
        slot = bucket[0] + index
        bucket[record_start : start + UNIT * bucket[slot]] = record + padding
        bucket[slot] = (size + len(padding)) // UNIT
        return True

    def remove(self, block: Block) -> None:
        """Remove a group."""
        _, bucket, index, start, _ = block
        count = bucket[0]
        slot = count + index
        del bucket[start : start + UNIT * bucket[slot]]
        del bucket[slot]
        del bucket[index]
        bucket[0] = count - 1
        self.count -= 1

    def blocks(self, number: int) -> Iterator[Block]:
        """Yield the blocks of a bucket. Values may be overwritten during the iteration, but sizes must not change."""
        bucket = self._buckets[number]
        count = bucket[0]
        start = 1 + 2 * count
        for index in range(1, count + 1):
            yield number, bucket, index, start, start + 1 + bucket[start]
            start += UNIT * bucket[count + index]

    def groups_to_check(self, until_ms: int) -> Iterator[list[Block]]:
        """Yield the groups to check, bucket by bucket. The table may change during the iteration: the new half of a
        bucket that is split comes after all other buckets."""
        first = 0
        while first < len(self.min_commit_ms):
            slice_columns = self.min_commit_ms[first : first + SCANNED_AT_ONCE]
            if min(slice_columns) <= until_ms:
                for number, min_commit_ms in enumerate(slice_columns, first):
                    if min_commit_ms <= until_ms:
                        yield self._groups_to_check_in(number, until_ms)
            first += SCANNED_AT_ONCE
            yield []

    def _groups_to_check_in(self, number: int, until_ms: int) -> list[Block]:
        found = []
        earliest_ms = CHECK_NEVER
        bucket = self._buckets[number]
        count = bucket[0]
        start = 1 + 2 * count
        for nth, size in enumerate(bucket[count + 1 : start], 1):
            record_start = start + 1 + bucket[start]
            min_commit_ms, _, column_flags = head_and_column_flags(bucket, record_start)
            if min_commit_ms <= until_ms or column_flags & EXPIRIES:
                found.append((number, bucket, nth, start, record_start))
            elif min_commit_ms < earliest_ms:
                earliest_ms = min_commit_ms
            start += UNIT * size
        self.min_commit_ms[number] = earliest_ms
        return found

    def _split(self) -> None:
        """Add a bucket, with a part of the groups of another one."""
        new = len(self._buckets)
        if new > self._mask:
            self._mask = 2 * self._mask + 1
        old = new & self._mask >> 1
        kept, moved = _Contents(), _Contents()
        bucket = self._buckets[old]
        for _, _, index, start, record_start in self.blocks(old):
            stays = crc32(bucket[start + 1 : record_start]) & self._mask == old
            count = bucket[0]
            (kept if stays else moved).add(bucket[index], bucket[count + index], bucket, start)
        self._buckets[old] = kept.bucket()
        self._buckets.append(moved.bucket())
        self.min_commit_ms.append(self.min_commit_ms[old])


class _Contents:
    """The contents of a new bucket."""

    def __init__(self) -> None:
        self._hash_bytes = bytearray()
        self._sizes = bytearray()
        self._blocks: list[bytearray] = []

    def add(self, hash_byte: int, size: int, bucket: bytearray, start: int) -> None:
        self._hash_bytes.append(hash_byte)
        self._sizes.append(size)
        self._blocks.append(bucket[start : start + UNIT * size])

    def bucket(self) -> bytearray:
        """Return the bucket, which has exactly the size of its contents."""
        return bytearray(b"".join((SIZES[len(self._sizes)], self._hash_bytes, self._sizes, *self._blocks)))
