"""Records: some entries of one group in a row of octets.

A record is a time (*since*: nothing of the record without a deadline of its own was committed before it), the size of
its layout, the layout, and the values in the layout's places; the metadata come last. Of entries that were all
committed at the same time, that time is the since. A commit for entries that a record has already is written over the
old values; only one that brings new partitions, or values for which the form has no room, makes a record anew.
"""

from __future__ import annotations

from itertools import islice, repeat
from operator import lt
from struct import Struct
from typing import TYPE_CHECKING, Any

from kproto_server.coordinator.table.column_layout import (
    METADATA,
    NOTHING,
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
    from collections.abc import Collection, Container, Sequence

    from kproto_server.coordinator.table.layouts import Layout, Layouts, TopicOfLayout

    Buffer = bytearray | bytes

HEAD = Struct("<qB")
HEAD_SIZE = HEAD.size
INT64 = Struct("<q")
CHECK_ALWAYS, CHECK_NEVER = -(1 << 63), (1 << 63) - 1
"""The since of what has to be looked at soon, and of what has not."""
ENTRIES_MAX = 64
"""Of one record: what a change of one of them may have to copy."""
LAYOUT_SIZE_MAX = 255
SIZE_MAX = 8192
"""Of a record with several entries."""

_unpack_head = HEAD.unpack_from
head_and_column_flags = Struct("<qBB").unpack_from
"""What a record begins with: since, size of the layout, and the layout's form."""
_int64, _put_int64 = INT64.unpack_from, INT64.pack_into
_new: Any = tuple.__new__


def encode(keys: Sequence[int], columns: Columns) -> bytes | None:
    """Return entries, whose keys are in order, as a record; None if there are too many for one."""
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


def layout_of(buffer: Buffer, place: int, layouts: Layouts) -> Layout:
    """Return the layout of the record at a place."""
    start = place + HEAD_SIZE
    return layouts.get(bytes(buffer[start : start + buffer[start - 1]]))


def decode(buffer: Buffer, place: int, layout: Layout) -> Columns:
    """Return the values of the record at a place."""
    (min_commit_ms, layout_size) = _unpack_head(buffer, place)
    start = place + HEAD_SIZE + layout_size
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


def set_min_commit_ms(buffer: bytearray, place: int, min_commit_ms: int) -> None:
    """Note when the record has to be looked at again, if it does not say that by its commit time."""
    if buffer[place + HEAD_SIZE] & TIME_EACH:
        _put_int64(buffer, place, min_commit_ms)


def entries_of(layout: Layout, columns: Columns, topic: TopicOfLayout) -> dict[int, OffsetAndMetadata]:
    """Return the entries of one of a layout's topics, by partition."""
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


def columns_from(rows: Collection[Sequence[Any]]) -> Columns:
    """Return rows of values, of which those of `Columns` come first, as columns."""
    if not rows:
        return NOTHING
    offsets, epochs, metadata, times, expiries = islice(zip(*rows, strict=True), 5)
    return offsets, epochs, metadata, times, expiries


def part(columns: Columns, start: int, stop: int) -> Columns:
    """Return the values of some entries."""
    offsets, epochs, metadata, times, expiries = columns
    return offsets[start:stop], epochs[start:stop], metadata[start:stop], times[start:stop], expiries[start:stop]


def merge(
    keys: Sequence[int], columns: Columns, new_keys: Sequence[int], new_columns: Columns
) -> tuple[tuple[int, ...], Columns]:
    """Return entries with others put in, or in place of them; of one that comes twice the last."""
    rows = dict(zip(keys, zip(*columns, strict=True), strict=True))
    rows.update(zip(new_keys, zip(*new_columns, strict=True), strict=True))
    return _in_order(rows)


def without(keys: Sequence[int], columns: Columns, doomed: Container[int]) -> tuple[tuple[int, ...], Columns]:
    """Return entries without some of them."""
    rows = zip(keys, zip(*columns, strict=True), strict=True)
    return _in_order({key: row for key, row in rows if key not in doomed})


def in_order(keys: tuple[int, ...], columns: Columns) -> tuple[tuple[int, ...], Columns]:
    """Return entries in the order of their keys; of one that comes twice the last."""
    if all(map(lt, keys, keys[1:])):
        return keys, columns
    return _in_order(dict(zip(keys, zip(*columns, strict=True), strict=True)))


def _in_order(rows: dict[int, tuple[Any, ...]]) -> tuple[tuple[int, ...], Columns]:
    keys = tuple(sorted(rows))
    return keys, columns_from([rows[key] for key in keys])


def cut(keys: tuple[int, ...], columns: Columns) -> list[bytearray]:
    """Return entries, whose keys are in order, as records, none of them too large."""
    made: list[bytearray] = []
    waiting = [(start, min(start + ENTRIES_MAX, len(keys))) for start in range(0, len(keys), ENTRIES_MAX)][::-1]
    while waiting:
        start, stop = waiting.pop()
        record = encode(keys[start:stop], part(columns, start, stop))
        if record is None:
            middle = (start + stop) // 2
            waiting += (middle, stop), (start, middle)
        else:
            made.append(bytearray(record))
    return made
