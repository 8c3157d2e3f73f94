"""Buffer 1: the records of consumer 1 that wait until the user gets them (KIP-333).

Order by partition: the records wait for all records of the catch-up range.

Order by key: a record waits for the older records of its key only. Which keys the catch-up range has is known when it
has been read once, for its keys (`RangeKeys`). Until then only records without a key are free.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar


class FetchedRecord(Protocol):
    """A record of either consumer; its length is the length of its value in bytes."""

    def offset(self) -> int | None: ...

    def leader_epoch(self) -> int | None: ...

    def key(self) -> str | bytes | None: ...

    def __len__(self) -> int: ...


R = TypeVar("R", bound=FetchedRecord)
RECORD_BYTES = 200
"""Of each record beside its value: the message object and librdkafka's, without which tombstones would cost nothing."""
SLOTS_PER_RECORD = 16
SLOTS_MIN, SLOTS_MAX = 1 << 10, 1 << 21
"""At most 8 MiB for a partition."""
HASH_BITS = 21
"""Bits of a key's hash for each of its three slots."""
DISTANCE_MAX = (1 << 32) - 1


def offset_of(record: FetchedRecord) -> int:
    offset = record.offset()
    assert offset is not None, "a fetched record has an offset"
    return offset


def size_of(records: Sequence[FetchedRecord]) -> int:
    """Return about how much memory records keep, in bytes."""
    return RECORD_BYTES * len(records) + sum(map(len, records))


class RangeKeys:
    """The last offset of each key in a catch-up range, in a table of limited size.

    A key has three slots, and each slot the last offset of all its keys. So the lowest of the three is never too low.
    It is too high, and a record waits longer than it has to, if other keys share all three: for one key of 1,000 in
    ranges of up to 130,000 records, and for more in larger ranges.
    """

    def __init__(self, start: int, end: int) -> None:
        self._start = start
        self.end: int = end
        self._position = start
        slot_count = SLOTS_MIN
        while slot_count < min(SLOTS_MAX, SLOTS_PER_RECORD * (end - start)):
            slot_count *= 2
        self._ends = array("I", bytes(4 * slot_count))
        """By slot, the distance from `start` to the offset after the last record; 0: no record."""

    @property
    def is_complete(self) -> bool:
        """Whether all records of the range are added."""
        return self._position >= self.end

    def add(self, records: Sequence[FetchedRecord]) -> None:
        """Add the next records; those after the range are ignored."""
        ends, mask = self._ends, len(self._ends) - 1
        for record in records:
            key, offset = record.key(), offset_of(record)
            if key is not None and offset < self.end:
                hashed = hash(key)
                distance = min(offset + 1 - self._start, DISTANCE_MAX)
                ends[hashed & mask] = distance
                ends[hashed >> HASH_BITS & mask] = distance
                ends[hashed >> 2 * HASH_BITS & mask] = distance
        if records:
            self.is_at(offset_of(records[-1]) + 1)

    def is_at(self, position: int) -> None:
        """Note that there is no further record before `position`."""
        self._position = max(self._position, position)

    def last_of(self, key: str | bytes) -> int:
        """Return the offset after the last record of a key, the start of the range or less without one."""
        ends, mask, hashed = self._ends, len(self._ends) - 1, hash(key)
        distance = min(ends[hashed >> shift & mask] for shift in (0, HASH_BITS, 2 * HASH_BITS))
        return self.end if distance == DISTANCE_MAX else self._start + distance


class Buffer1(Generic[R]):
    """Records in order of their offsets: order by partition."""

    all_wait: bool = True
    """Whether no record may be delivered before the range is."""

    def __init__(self) -> None:
        self._records: deque[R] = deque()
        self.size_bytes: int = 0

    def add(self, records: Sequence[R]) -> None:
        self._records.extend(records)
        self.size_bytes += size_of(records)

    def has_free(self, position: int) -> bool:
        """Return whether a record may be delivered before the range is, of which `position` is delivered."""
        return False

    def take_free(self, count: int, position: int) -> list[R]:
        """Return and remove such records."""
        return []

    def take(self, count: int) -> list[R]:
        """Return and remove the next records; the range is delivered."""
        records = [self._records.popleft() for _ in range(min(count, len(self._records)))]
        self.size_bytes -= size_of(records)
        return records

    def first(self) -> R | None:
        """Return the next record; the range is delivered."""
        return self._records[0] if self._records else None

    def clear(self) -> None:
        self._records.clear()


class KeyedBuffer1(Buffer1[R]):
    """Order by key: the records of a key keep their order, in the range and after it.

    All records of a key are free from the same position on. So they leave the heap in the order of their offsets.
    """

    all_wait = False

    def __init__(self, keys: RangeKeys) -> None:
        super().__init__()
        self.size_bytes: int = 0
        self._keys = keys
        self._unknown: deque[R] = deque()
        """Records that wait until the keys of the range are known."""
        self._free: deque[R] = deque()
        self._held: list[tuple[int, int, R]] = []
        """A heap: the position from which on a record is free, its offset, and the record."""

    def has_free(self, position: int) -> bool:
        self._sort()
        while self._held and self._held[0][0] <= position:
            self._free.append(heappop(self._held)[2])
        return bool(self._free)

    def take_free(self, count: int, position: int) -> list[R]:
        self.has_free(position)
        records = [self._free.popleft() for _ in range(min(count, len(self._free)))]
        self.size_bytes -= size_of(records)
        return records

    def take(self, count: int) -> list[R]:
        self._restore_order()
        return super().take(count)

    def first(self) -> R | None:
        self._restore_order()
        return super().first()

    def clear(self) -> None:
        super().clear()
        self._unknown.clear()
        self._free.clear()
        self._held.clear()

    def _sort(self) -> None:
        """Divide new records into those without a key and those that wait for the records of their key."""
        if self._keys.is_complete:
            for record in self._unknown:
                self._hold(record)
            self._unknown.clear()
        while self._records:
            record = self._records.popleft()
            if record.key() is None:
                self._free.append(record)
            elif self._keys.is_complete:
                self._hold(record)
            else:
                self._unknown.append(record)

    def _hold(self, record: R) -> None:
        heappush(self._held, (self._keys.last_of(record.key() or b""), offset_of(record), record))

    def _restore_order(self) -> None:
        if self._unknown or self._free or self._held:
            held = [record for _, _, record in self._held]
            self._records = deque(sorted((*self._records, *self._unknown, *self._free, *held), key=offset_of))
            self._unknown.clear()
            self._free.clear()
            self._held.clear()
