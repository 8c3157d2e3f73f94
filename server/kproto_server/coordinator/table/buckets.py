"""Groups with few entries: a hash table whose buckets are rows of octets.

Theory of operation. A bucket holds some groups one after the other, as *blocks*: the group's id and its record. Before
them is the bucket's directory: how many blocks there are, an octet of each id's hash, and the size of each block. Who
looks for a group has its octet of the hash searched among those in the directory, adds up the sizes before it, and
compares the id. There is no other index, no object a group, and nothing that could be fragmented: when a block grows,
the octets behind it in its bucket move, some hundred.

The table grows by linear hashing: whenever there are more than `GROUPS_PER_BUCKET` groups for each bucket, one bucket
is split in two, each in its turn. No operation ever does more than that. It does not shrink; empty buckets are small.

Each bucket also has a *since*: no group in it that somebody has to look at in time was committed to earlier.
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
"""In one bucket: as many as an octet counts."""
UNIT = 4
BLOCK_SIZE_MAX = UNIT * 255
"""Sizes are octets that count units."""
KEY_SIZE_MAX = 255
SCANNED_AT_ONCE = 4096
"""Buckets whose sinces are looked at in one step."""

Block = tuple[int, bytearray, int, int, int]
"""Where a group is, until the next change in its bucket: the number of the bucket, the bucket, which block it is in the
directory, from 1 on, where the block begins, and where the record does in it."""

SIZES = [bytes((size,)) for size in range(KEY_SIZE_MAX + 1)]
PADDING = [bytes(-size % UNIT) for size in range(UNIT)]


class Buckets:
    """The groups with few entries. Keys are their ids as octets."""

    __slots__ = ("_buckets", "_mask", "count", "min_commit_ms")

    def __init__(self) -> None:
        self._buckets = [bytearray(1)]
        self._mask = 0
        self.count = 0
        """Groups."""
        self.min_commit_ms = array("q", (CHECK_NEVER,))
        """By the number of the bucket."""

    def __len__(self) -> int:
        """The number of buckets."""
        return len(self._buckets)

    def number_of(self, hashed: int) -> int:
        """Return the bucket for a key's hash."""
        number = hashed & self._mask
        return number if number < len(self._buckets) else number & self._mask >> 1

    def find(self, key: bytes) -> Block | None:
        """Return where a group is."""
        hashed = crc32(key)
        number = hashed & self._mask
        if number >= len(self._buckets):
            number &= self._mask >> 1
        bucket = self._buckets[number]
        count = bucket[0]
        octet = hashed >> 24
        index = bucket.find(octet, 1, count + 1)
        while index > 0:
            start = 1 + 2 * count + UNIT * sum(bucket[count + 1 : count + index])
            place = start + 1 + bucket[start]
            if bucket[start + 1 : place] == key:
                return number, bucket, index, start, place
            index = bucket.find(octet, index + 1, count + 1)
        return None

    def add(self, key: bytes, record: bytes) -> bool:
        """Add a group that is not there; False if there is no room for it, and nothing has changed then."""
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
        """Give a group another record; False if there is no room for it, and nothing has changed then."""
        _, bucket, index, start, place = block
        size = place - start + len(record)
        if size > BLOCK_SIZE_MAX:
            return False
        padding = PADDING[size % UNIT]
        slot = bucket[0] + index
        bucket[place : start + UNIT * bucket[slot]] = record + padding
        bucket[slot] = (size + len(padding)) // UNIT
        return True

    def remove(self, block: Block) -> None:
        """Take a group out."""
        _, bucket, index, start, _ = block
        count = bucket[0]
        slot = count + index
        del bucket[start : start + UNIT * bucket[slot]]
        del bucket[slot]
        del bucket[index]
        bucket[0] = count - 1
        self.count -= 1

    def blocks(self, number: int) -> Iterator[Block]:
        """Yield what is in a bucket. Records may be written over meanwhile, but keep their sizes."""
        bucket = self._buckets[number]
        count = bucket[0]
        start = 1 + 2 * count
        for index in range(1, count + 1):
            yield number, bucket, index, start, start + 1 + bucket[start]
            start += UNIT * bucket[count + index]

    def due(self, until_ms: int) -> Iterator[list[Block]]:
        """Yield by bucket the groups that are due. The table may change meanwhile: a bucket that is split is found
        again behind all others."""
        first = 0
        while first < len(self.min_commit_ms):
            part = self.min_commit_ms[first : first + SCANNED_AT_ONCE]
            if min(part) <= until_ms:
                for number, min_commit_ms in enumerate(part, first):
                    if min_commit_ms <= until_ms:
                        yield self._due_of(number, until_ms)
            first += SCANNED_AT_ONCE
            yield []

    def _due_of(self, number: int, until_ms: int) -> list[Block]:
        found = []
        earliest_ms = CHECK_NEVER
        bucket = self._buckets[number]
        count = bucket[0]
        start = 1 + 2 * count
        for nth, size in enumerate(bucket[count + 1 : start], 1):
            place = start + 1 + bucket[start]
            min_commit_ms, _, column_flags = head_and_column_flags(bucket, place)
            if min_commit_ms <= until_ms or column_flags & EXPIRIES:
                found.append((number, bucket, nth, start, place))
            elif min_commit_ms < earliest_ms:
                earliest_ms = min_commit_ms
            start += UNIT * size
        self.min_commit_ms[number] = earliest_ms
        return found

    def _split(self) -> None:
        """Make one bucket more, of what another one has."""
        new = len(self._buckets)
        if new > self._mask:
            self._mask = 2 * self._mask + 1
        old = new & self._mask >> 1
        kept, moved = _Contents(), _Contents()
        bucket = self._buckets[old]
        for _, _, index, start, place in self.blocks(old):
            stays = crc32(bucket[start + 1 : place]) & self._mask == old
            count = bucket[0]
            (kept if stays else moved).add(bucket[index], bucket[count + index], bucket, start)
        self._buckets[old] = kept.bucket()
        self._buckets.append(moved.bucket())
        self.min_commit_ms.append(self.min_commit_ms[old])


class _Contents:
    """What is to be in a bucket."""

    def __init__(self) -> None:
        self._octets = bytearray()
        self._sizes = bytearray()
        self._blocks: list[bytearray] = []

    def add(self, octet: int, size: int, bucket: bytearray, start: int) -> None:
        self._octets.append(octet)
        self._sizes.append(size)
        self._blocks.append(bucket[start : start + UNIT * size])

    def bucket(self) -> bytearray:
        """Return them as a bucket of exactly their size."""
        return bytearray(b"".join((SIZES[len(self._sizes)], self._octets, self._sizes, *self._blocks)))
