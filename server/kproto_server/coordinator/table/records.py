"""Records: some entries of one group in a row of octets.

A record is a time (*since*: nothing of the record without a deadline of its own was committed before it), the size of
its layout, the layout, and the values in the layout's places; the metadata come last. Of entries that were all
committed at the same time, that time is the since. A commit for entries that a record has already is written over the
old values; only one that brings new partitions, or values for which the form has no room, makes a record anew.
"""

from __future__ import annotations

from itertools import repeat
from operator import lt
from struct import Struct
from typing import TYPE_CHECKING, Any

from kproto_server.coordinator.table.entries import OffsetAndMetadata
from kproto_server.coordinator.table.forms import (
    EPOCH_EACH,
    EPOCH_SAME,
    EXPIRIES,
    EXPIRY_EACH,
    EXPIRY_SAME,
    METADATA,
    NO_EPOCH,
    NOTHING,
    TIME_EACH,
    Columns,
    columns_of,
    form_of,
    places_of,
    values_of,
)
from kproto_server.coordinator.table.keys import encode_keys

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from kproto_server.coordinator.table.layouts import Layout, Layouts, TopicOfLayout

    Buffer = bytearray | bytes

HEAD = Struct("<qB")
HEAD_SIZE = HEAD.size
INT64 = Struct("<q")
INT32 = Struct("<i")
ALWAYS, NEVER = -(1 << 63), (1 << 63) - 1
"""The since of what has to be looked at soon, and of what has not."""
ENTRIES_MAX = 64
"""Of one record: what a change of one of them may have to copy."""
LAYOUT_SIZE_MAX = 255
SIZE_MAX = 8192
"""Of a record with several entries."""

_unpack_head = HEAD.unpack_from
_int64, _put_int64 = INT64.unpack_from, INT64.pack_into
_int32, _put_int32 = INT32.unpack_from, INT32.pack_into
_new: Any = tuple.__new__


def encode(keys: Sequence[int], columns: Columns) -> bytes | None:
    """Return entries, whose keys are in order, as a record; None if there are too many for one."""
    count = len(keys)
    if count > ENTRIES_MAX:
        return None
    form = form_of(columns)
    layout = bytes((form,)) + encode_keys(keys)
    if len(layout) > LAYOUT_SIZE_MAX:
        return None
    values = values_of(form, columns)
    texts: list[bytes] = []
    if form & METADATA:
        texts = [text.encode("utf-8", "surrogatepass") for text in columns.metadata]
        values += map(len, texts)
    record = b"".join(
        (HEAD.pack(min(columns.times), len(layout)), layout, places_of(form, count).pack(*values), *texts)
    )
    return record if len(record) <= SIZE_MAX or count == 1 else None


def layout_of(buffer: Buffer, place: int, layouts: Layouts) -> Layout:
    """Return the layout of the record at a place."""
    start = place + HEAD_SIZE
    return layouts.get(bytes(buffer[start : start + buffer[start - 1]]))


def decode(buffer: Buffer, place: int, layout: Layout) -> Columns:
    """Return the values of the record at a place."""
    (since_ms, layout_size) = _unpack_head(buffer, place)
    start = place + HEAD_SIZE + layout_size
    form, count = layout.form, layout.count
    values = layout.places.unpack_from(buffer, start)
    metadata: Sequence[str] = ("",) * count
    if form & METADATA:
        end = start + layout.places.size
        metadata = []
        for size in values[-count:]:
            metadata.append(bytes(buffer[end : end + size]).decode("utf-8", "surrogatepass"))
            end += size
    return columns_of(form, count, since_ms, values, metadata)


def put(buffer: bytearray, place: int, layout: Layout, keys: Sequence[int], columns: Columns) -> bool:
    """Put new values for entries into the record at a place; False if it has no room for them, and nothing has changed
    then. Of a key that comes twice the last counts."""
    if len(keys) == layout.count and keys == layout.keys:
        return _overwrite(buffer, place, layout, columns)
    known = layout.positions
    try:
        positions = [known[key] for key in keys]
    except KeyError:
        return False
    return _update(buffer, place, layout, positions, columns)


def _overwrite(buffer: bytearray, place: int, layout: Layout, columns: Columns) -> bool:
    """Put new values in the place of all; False if there is no room for them as they are."""
    form = form_of(columns)
    if form not in layout.holds:
        return False
    start = place + HEAD_SIZE + buffer[place + HEAD_SIZE - 1]
    if layout.form == 0:
        layout.places.pack_into(buffer, start, *columns.offsets)
    else:
        layout.places.pack_into(buffer, start, *values_of(layout.form, columns))
    _put_int64(buffer, place, min(columns.times) if form & TIME_EACH else columns.times[0])
    return True


def _update(buffer: bytearray, place: int, layout: Layout, positions: Sequence[int], columns: Columns) -> bool:
    """Put new values in the place of some; False if there is no room for them, and nothing has changed then."""
    form, places = layout.form, layout.places
    offsets, epochs, metadata, times, expiries = columns
    count = len(positions)
    since_ms, layout_size = _unpack_head(buffer, place)
    start = place + HEAD_SIZE + layout_size
    if form & METADATA or metadata.count("") != count:
        return False
    if not form & TIME_EACH and times.count(since_ms) != count:
        return False
    if not form & EXPIRY_EACH:
        expiry = _int64(buffer, start + places.expiries)[0] if form & EXPIRY_SAME else None
        if expiries.count(expiry) != count:
            return False
    if not form & EPOCH_EACH:
        epoch = _int32(buffer, start + places.epochs)[0] if form & EPOCH_SAME else NO_EPOCH
        if epochs.count(epoch) != count:
            return False
    for position, offset in zip(positions, offsets, strict=True):
        _put_int64(buffer, start + places.offsets + 8 * position, offset)
    if form & TIME_EACH:
        for position, time_ms in zip(positions, times, strict=True):
            _put_int64(buffer, start + 8 * position, time_ms)
        _put_int64(buffer, place, min(since_ms, *times))
    if form & EXPIRY_EACH:
        for position, expiry in zip(positions, expiries, strict=True):
            _put_int64(buffer, start + places.expiries + 8 * position, expiry or 0)
            buffer[start + places.flags + position] = expiry is not None
    if form & EPOCH_EACH:
        for position, epoch in zip(positions, epochs, strict=True):
            _put_int32(buffer, start + places.epochs + 4 * position, epoch)
    return True


def due_from(buffer: Buffer, place: int) -> int:
    """Return the since of a record; of one with deadlines of its own, the earliest there is."""
    since_ms: int = _int64(buffer, place)[0]
    return ALWAYS if buffer[place + HEAD_SIZE] & EXPIRIES else since_ms


def set_since(buffer: bytearray, place: int, since_ms: int) -> None:
    """Note when the record has to be looked at again, if it does not say that by its commit time."""
    if buffer[place + HEAD_SIZE] & TIME_EACH:
        _put_int64(buffer, place, since_ms)


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


def merge(
    keys: Sequence[int], columns: Columns, new_keys: Sequence[int], new_columns: Columns
) -> tuple[Sequence[int], Columns]:
    """Return entries with others put in, or in place of them."""
    rows = dict(zip(keys, zip(*columns, strict=True), strict=True))
    rows.update(zip(new_keys, zip(*new_columns, strict=True), strict=True))
    return _in_order(rows)


def without(keys: Sequence[int], columns: Columns, doomed: Container[int]) -> tuple[Sequence[int], Columns]:
    """Return entries without some of them."""
    rows = zip(keys, zip(*columns, strict=True), strict=True)
    return _in_order({key: row for key, row in rows if key not in doomed})


def _in_order(rows: dict[int, tuple[Any, ...]]) -> tuple[Sequence[int], Columns]:
    keys = tuple(sorted(rows))
    return keys, Columns(*zip(*[rows[key] for key in keys], strict=True)) if keys else NOTHING


def in_order(keys: Sequence[int], columns: Columns) -> tuple[Sequence[int], Columns]:
    """Return entries in the order of their keys; of one that comes twice the last."""
    if all(map(lt, keys, keys[1:])):
        return keys, columns
    return _in_order(dict(zip(keys, zip(*columns, strict=True), strict=True)))


def cut(keys: Sequence[int], columns: Columns) -> list[bytearray]:
    """Return entries, whose keys are in order, as records, none of them too large."""
    made: list[bytearray] = []
    waiting = [(start, min(start + ENTRIES_MAX, len(keys))) for start in range(0, len(keys), ENTRIES_MAX)][::-1]
    while waiting:
        start, stop = waiting.pop()
        record = encode(keys[start:stop], columns.part(start, stop))
        if record is None:
            middle = (start + stop) // 2
            waiting += (middle, stop), (start, middle)
        else:
            made.append(bytearray(record))
    return made
