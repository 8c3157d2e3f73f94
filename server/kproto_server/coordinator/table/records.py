"""Records: some entries of one group as bytes.

A record is a timestamp, the size of its layout, the layout, the columns, and the metadata texts. The timestamp is the
record's *minimum commit timestamp*: no entry of the record without an expire timestamp was committed before it. If all
entries were committed at the same time, it is their commit timestamp, and there is no column for it.

A commit for entries that a record has overwrites the old values in place. Only a commit with further partitions, or
with values for which the record has no column, encodes a new record.
"""

from __future__ import annotations

from itertools import islice, repeat
from operator import lt
from struct import Struct
from typing import TYPE_CHECKING, Any

from kproto_server.coordinator.table.column_layout import (
    METADATA,
    NO_VALUES,
    TIME_EACH,
    Columns,
    column_flags_of,
    column_layout_of,
    columns_of,
    values_of,
)
from kproto_server.coordinator.table.entries import OffsetAndMetadata
from kproto_server.coordinator.table.keys import encode_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Sequence

    from kproto_server.coordinator.table.layouts import Layout, Layouts, LayoutTopic

    Buffer = bytearray | bytes

HEAD = Struct("<qB")
HEAD_SIZE = HEAD.size
INT64 = Struct("<q")
CHECK_ALWAYS, CHECK_NEVER = -(1 << 63), (1 << 63) - 1
"""Minimum commit timestamps of entries to check at the next run, and of those that are not to be checked."""
ENTRIES_MAX = 64
"""Entries of one record: a change of one of them may have to copy all."""
LAYOUT_SIZE_MAX = 255
SIZE_MAX = 8192
"""The size of a record in bytes; one with a single entry may be larger."""

_unpack_head = HEAD.unpack_from
head_and_column_flags: Callable[..., tuple[Any, ...]] = Struct("<qBB").unpack_from
"""The beginning of a record: minimum commit timestamp, size of the layout, column flags."""
_put_int64 = INT64.pack_into
_new: Any = tuple.__new__


def encode(keys: Sequence[int], columns: Columns) -> bytes | None:
    """Return entries with sorted keys as a record; None if they are too many for one record."""
    count = len(keys)
    if count > ENTRIES_MAX:
        return None
    _, _, metadata, times, _ = columns
    column_flags = column_flags_of(columns)
    layout = bytes((column_flags,)) + encode_keys(keys)
    if len(layout) > LAYOUT_SIZE_MAX:
        return None
    values = values_of(column_flags, columns)
    texts: list[bytes] = []
    if column_flags & METADATA:
        texts = [text.encode("utf-8", "surrogatepass") for text in metadata]
        values += map(len, texts)
    record = b"".join(
        (HEAD.pack(min(times), len(layout)), layout, column_layout_of(column_flags, count).pack(*values), *texts)
    )
    return record if len(record) <= SIZE_MAX or count == 1 else None


def layout_of(buffer: Buffer, record_start: int, layouts: Layouts) -> Layout:
    """Return the layout of the record at a position."""
    start = record_start + HEAD_SIZE
    return layouts.get(bytes(buffer[start : start + buffer[start - 1]]))


def decode(buffer: Buffer, record_start: int, layout: Layout) -> Columns:
    """Return the values of the record at a position."""
    (min_commit_ms, layout_size) = _unpack_head(buffer, record_start)
    start = record_start + HEAD_SIZE + layout_size
    column_flags, count = layout.column_flags, layout.count
    values = layout.column_layout.unpack_from(buffer, start)
    metadata: Sequence[str] = ("",) * count
    if column_flags & METADATA:
        end = start + layout.column_layout.size
        metadata = []
        for size in values[-count:]:
            metadata.append(bytes(buffer[end : end + size]).decode("utf-8", "surrogatepass"))
            end += size
    return columns_of(column_flags, count, min_commit_ms, values, metadata)


def set_min_commit_ms(buffer: bytearray, record_start: int, min_commit_ms: int) -> None:
    """Set when the record has to be checked again, unless the timestamp is that of all its entries."""
    if buffer[record_start + HEAD_SIZE] & TIME_EACH:
        _put_int64(buffer, record_start, min_commit_ms)


def entries_of(layout: Layout, columns: Columns, topic: LayoutTopic) -> dict[int, OffsetAndMetadata]:
    """Return the entries of one topic of a layout, by partition."""
    first, stop = topic.first, topic.stop
    if stop - first == layout.count:
        rows = zip(*columns, repeat(topic.topic_id), strict=False)
    else:
        rows = zip(*[column[first:stop] for column in columns], repeat(topic.topic_id), strict=False)
    return dict(zip(topic.partitions, map(_new, repeat(OffsetAndMetadata), rows), strict=True))


def topics_of(layout: Layout, columns: Columns) -> dict[str, dict[int, OffsetAndMetadata]]:
    """Return all entries, by topic and partition."""
    found: dict[str, dict[int, OffsetAndMetadata]] = {}
    for topic in layout.topics:
        entries = entries_of(layout, columns, topic)
        if topic.name in found:
            found[topic.name].update(entries)
        else:
            found[topic.name] = entries
    return found


def to_columns(rows: Collection[Sequence[Any]]) -> Columns:
    """Return the columns of rows, whose first values are those of `Columns`."""
    if not rows:
        return NO_VALUES
    offsets, epochs, metadata, times, expiries = islice(zip(*rows, strict=True), 5)
    return offsets, epochs, metadata, times, expiries


def slice_columns(columns: Columns, start: int, stop: int) -> Columns:
    """Return the values of some entries."""
    offsets, epochs, metadata, times, expiries = columns
    return offsets[start:stop], epochs[start:stop], metadata[start:stop], times[start:stop], expiries[start:stop]


def merge(
    keys: Sequence[int], columns: Columns, new_keys: Sequence[int], new_columns: Columns
) -> tuple[tuple[int, ...], Columns]:
    """Return entries merged with others, which replace those with the same keys; of equal new keys the last counts."""
    rows = dict(zip(keys, zip(*columns, strict=True), strict=True))
    rows.update(zip(new_keys, zip(*new_columns, strict=True), strict=True))
    return _sorted_entries(rows)


def without_keys(keys: Sequence[int], columns: Columns, deleted: Container[int]) -> tuple[tuple[int, ...], Columns]:
    """Return entries without some keys."""
    rows = zip(keys, zip(*columns, strict=True), strict=True)
    return _sorted_entries({key: row for key, row in rows if key not in deleted})


def sorted_entries(keys: tuple[int, ...], columns: Columns) -> tuple[tuple[int, ...], Columns]:
    """Return entries sorted by key; of equal keys the last counts."""
    if all(map(lt, keys, keys[1:])):
        return keys, columns
    return _sorted_entries(dict(zip(keys, zip(*columns, strict=True), strict=True)))


def _sorted_entries(rows: dict[int, tuple[Any, ...]]) -> tuple[tuple[int, ...], Columns]:
    keys = tuple(sorted(rows))
    return keys, to_columns([rows[key] for key in keys])


def split_records(keys: tuple[int, ...], columns: Columns) -> list[bytearray]:
    """Return entries with sorted keys as records, none of which is too large."""
    made: list[bytearray] = []
    ranges = [(start, min(start + ENTRIES_MAX, len(keys))) for start in range(0, len(keys), ENTRIES_MAX)][::-1]
    while ranges:
        start, stop = ranges.pop()
        record = encode(keys[start:stop], slice_columns(columns, start, stop))
        if record is None:
            middle = (start + stop) // 2
            ranges += (middle, stop), (start, middle)
        else:
            made.append(bytearray(record))
    return made
