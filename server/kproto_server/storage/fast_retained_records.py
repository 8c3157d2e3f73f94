"""Fast path of compaction for the most common batches.

These batches have magic 2, no compression, no transaction and no delete horizon, and varints of at most two bytes. All
other batches, and batches that fail any check here, go to `RetainedRecords`, the reference implementation, which comes
to the same result for every batch.
"""

# Theory of operation. A consumer commits the same partitions again and again, so most batches of an offsets partition
# have the same keys at the same positions as an earlier batch. `Layouts` recognizes such a batch with one unpacking,
# and `note` only stores its base offset as the newest of that layout, instead of one entry in the offset map for each
# key. `settle` moves these into the offset map after the first pass. In the second pass `keep` drops such a batch with
# one comparison if its layout has a newer batch.
#
# Measured, microseconds for each record in commits of 10 partitions, 10 of each group: 3.9 with the reference
# implementation alone, 2.2 with the fast path without layouts, 0.8 with both.

from __future__ import annotations

from kproto.records.batch_header import CHECKED_FROM, HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, MAGIC, header_struct
from kproto.records.checksum import crc32c
from kproto_server.storage.batch_layouts import Layout, Layouts

HEAD = header_struct("base_offset", "batch_length", "magic", "crc", "attributes", "last_offset_delta", "record_count")
RECORD_COUNT_MAX = 1000
"""Offset deltas of more records can take three bytes."""

Range = tuple[int, int]
"""Start and end position."""
Keys = tuple[tuple[bytes, int], ...]
"""Keys and offset deltas."""


class FastRetainedRecords:
    """The fast path of one compaction of one log; it shares the offset map of its `RetainedRecords`."""

    def __init__(self, offset_map: dict[bytes, int]) -> None:
        self._offset_map = offset_map
        self._layouts = Layouts()

    def note(self, buffer: bytes, start: int, until: int, first_dirty: int) -> int:
        """Note the keys of the dirty batches from ``start`` on.

        Returns:
            the position of the first batch that the fast path does not take, that is not complete, or that begins at
            ``until`` or later.
        """
        find = self._layouts.find
        while start < until and (head := _whole_batch(buffer, start)) is not None:
            base, end, count, last = head
            if base >= first_dirty:
                records = buffer[start + HEADER_SIZE : end]
                layout = find(records, count, last)
                if layout is not None:
                    layout.newest = base
                elif not self._add_layout(records, base, count, last):
                    return start
            start = end
        return start

    def _add_layout(self, records: bytes, base: int, count: int, last: int) -> bool:
        """Note a batch of a new layout; return False if the fast path does not take it."""
        parsed = _parse_records(records, count, last)
        if parsed is None:
            return False
        keys, values = parsed
        self._offset_map.update([(key, base + delta) for key, delta in keys])
        layout = self._layouts.add(records, keys, values, last)
        if layout is not None:
            layout.newest = base
        return True

    def settle(self) -> None:
        """Add the newest batch of each layout to the offset map, after the first pass."""
        offset_map = self._offset_map
        for layout in self._layouts.all:
            base = layout.newest
            for key, delta in layout.keys:
                # A batch of another layout can have a newer record of the same key.
                if offset_map[key] < base + delta:
                    offset_map[key] = base + delta

    def keep(self, buffer: bytes, start: int, until: int, end_offset: int) -> tuple[int, list[Range]]:
        """Return the end position of the batches that the fast path takes, and the ranges of retained bytes.

        Like `note` it ends at a batch that it does not take, and also at ``end_offset``, at a batch with tombstones,
        and at a batch of which only some records are retained.
        """
        find = self._layouts.find
        ranges: list[Range] = []
        begin = start
        while start < until and (head := _whole_batch(buffer, start)) is not None:
            base, end, count, last = head
            if base >= end_offset:
                break
            records = buffer[start + HEADER_SIZE : end]
            layout = find(records, count, last)
            is_superseded = layout is not None and layout.newest > base
            retained = 0 if is_superseded else self._retained_count(layout, records, base, count, last)
            if retained == 0:
                if begin < start:
                    ranges.append((begin, start))
                begin = end
            elif retained != count:
                break
            start = end
        if begin < start:
            ranges.append((begin, start))
        return start, ranges

    def _retained_count(self, layout: Layout | None, records: bytes, base: int, count: int, last: int) -> int:
        """Return the number of retained records of a batch; -1 if the fast path does not take it."""
        if layout is not None:
            keys = layout.keys
        else:
            parsed = _parse_records(records, count, last)
            if parsed is None:
                return -1
            keys = parsed[0]
        get = self._offset_map.get
        return sum([get(key, 0) <= base + delta for key, delta in keys])


def _whole_batch(buffer: bytes, start: int) -> tuple[int, int, int, int] | None:
    """Return base offset, end position, record count and last offset delta; None if the fast path does not take it."""
    if start + HEADER_SIZE > len(buffer):
        return None
    base, length, magic, crc, attributes, last, count = HEAD.unpack_from(buffer, start)
    end = start + LOG_OVERHEAD + length
    if (
        end > len(buffer)
        or magic != MAGIC
        or attributes
        or length < LENGTH_MIN
        or not 0 < count <= RECORD_COUNT_MAX
        or crc32c(buffer[start + CHECKED_FROM : end]) != crc
    ):
        return None
    return base, end, count, last


def _parse_records(records: bytes, count: int, last: int) -> tuple[Keys, list[Range]] | None:
    """Return keys with offset deltas, and the ranges of the values; None if the fast path does not take the batch.

    Varints of one and two bytes are decoded in place, which a call for each would make three times as slow.
    """
    keys: list[tuple[bytes, int]] = []
    values: list[Range] = []
    p, end, previous = 0, len(records), -1
    try:
        while p < end:
            size = records[p]
            if size > 0x7F:
                p += 1
                if records[p] > 0x7F:
                    return None
                size = size & 0x7F | records[p] << 7
            record_end = p + 1 + (size >> 1)
            # After the size: attributes, timestamp delta, offset delta, size of the key, key, size of the value. The
            # timestamp delta has one byte: all records of a commit have the same timestamp.
            delta, key = records[p + 3], p + 5
            if delta > 0x7F:
                if records[p + 4] > 0x7F:
                    return None
                delta = delta & 0x7F | records[p + 4] << 7
                key += 1
            # An odd zigzag delta is negative. `RetainedRecords` retains a batch whose offsets do not rise.
            if delta & 1 or delta <= previous:
                return None
            previous = delta
            key_size = records[key - 1]
            # An odd zigzag size is negative: a null key. Keys of more than 63 bytes have a size of two bytes.
            if records[p + 2] > 0x7F or key_size > 0x7F or key_size & 1:
                return None
            value = key + (key_size >> 1)
            keys.append((records[key:value], delta >> 1))
            value_size = records[value]
            value += 1
            if value_size > 0x7F:
                if records[value] > 0x7F:
                    return None
                value_size = value_size & 0x7F | records[value] << 7
                value += 1
            value_end = value + (value_size >> 1)
            # An odd size is a tombstone. Headers follow the value, at least their count.
            if value_size & 1 or value_end >= record_end:
                return None
            values.append((value, value_end))
            p = record_end
    except IndexError:
        return None
    return (tuple(keys), values) if p == end and len(keys) == count and previous >> 1 <= last else None
