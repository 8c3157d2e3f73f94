"""Overwriting values of a record in place.

Most commits are of entries that the record has, with values that fit into its columns. All values are checked first: if
one does not fit, because its column has one value for all entries and this is another, nothing is written.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any

from kproto_server.coordinator.table.column_layout import (
    EPOCH_EACH,
    EPOCH_SAME,
    EXPIRIES,
    EXPIRY_EACH,
    METADATA,
    NO_EPOCH,
    TIME_EACH,
    Columns,
)
from kproto_server.coordinator.table.records import HEAD, HEAD_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kproto_server.coordinator.table.layouts import Layout, Positions

INT64, INT32, FLAG = "q", "i", "?"
SIZES = {INT64: 8, INT32: 4, FLAG: 1}

_unpack_head = HEAD.unpack_from
_int64, _put_int64 = Struct("<q").unpack_from, Struct("<q").pack_into
_int32, _put_int32 = Struct("<i").unpack_from, Struct("<i").pack_into


@lru_cache(maxsize=256)
def _packer(count: int, kind: str) -> Callable[..., None]:
    return Struct(f"<{count}{kind}").pack_into


def overwrite_values(
    buffer: bytearray, record_start: int, layout: Layout, positions: Positions, columns: Columns
) -> bool:
    """Overwrite the values of some entries of the record at a position; ``positions`` are their distinct indexes.

    Return False and change nothing if the record has no room for a value.
    """
    offsets, epochs, metadata, times, expiries = columns
    count = len(offsets)
    column_flags, column_layout = layout.column_flags, layout.column_layout
    is_whole = count == layout.count
    min_commit_ms, layout_size = _unpack_head(buffer, record_start)
    start = record_start + HEAD_SIZE + layout_size
    time_ms = times[0]
    if column_flags & METADATA or metadata.count("") != count:
        return False
    if not column_flags & TIME_EACH and (times.count(time_ms) != count or not (is_whole or time_ms == min_commit_ms)):
        return False
    if not column_flags & EXPIRIES:
        if expiries.count(None) != count:
            return False
    elif not column_flags & EXPIRY_EACH:
        expiry = expiries[0] if is_whole else _int64(buffer, start + column_layout.expiries)[0]
        if expiry is None or expiries.count(expiry) != count:
            return False
    if not column_flags & EPOCH_EACH:
        epoch = NO_EPOCH
        if column_flags & EPOCH_SAME:
            epoch = epochs[0] if is_whole else _int32(buffer, start + column_layout.epochs)[0]
        if epochs.count(epoch) != count:
            return False
    if column_flags & ~TIME_EACH:
        _put_expiries_and_epochs(buffer, start, layout, positions, columns)
    if column_flags & TIME_EACH:
        _put_each(buffer, start, INT64, positions, times)
        earliest_ms = min(times)
        time_ms = earliest_ms if is_whole or earliest_ms < min_commit_ms else min_commit_ms
    _put_int64(buffer, record_start, time_ms)
    if is_whole and not column_flags:
        column_layout.pack_into(buffer, start, *offsets)
    else:
        _put_each(buffer, start + column_layout.offsets, INT64, positions, offsets)
    return True


def _put_expiries_and_epochs(
    buffer: bytearray, start: int, layout: Layout, positions: Positions, columns: Columns
) -> None:
    column_flags, column_layout = layout.column_flags, layout.column_layout
    _, epochs, _, _, expiries = columns
    if column_flags & EXPIRY_EACH:
        _put_each(buffer, start + column_layout.expiries, INT64, positions, [expiry or 0 for expiry in expiries])
        _put_each(buffer, start + column_layout.flags, FLAG, positions, [expiry is not None for expiry in expiries])
    elif column_flags & EXPIRIES:
        _put_int64(buffer, start + column_layout.expiries, expiries[0])
    if column_flags & EPOCH_EACH:
        _put_each(buffer, start + column_layout.epochs, INT32, positions, epochs)
    elif column_flags & EPOCH_SAME:
        _put_int32(buffer, start + column_layout.epochs, epochs[0])


def _put_each(buffer: bytearray, start: int, kind: str, positions: Positions, values: Sequence[Any]) -> None:
    size = SIZES[kind]
    if isinstance(positions, range):
        _packer(len(values), kind)(buffer, start + size * positions.start, *values)
        return
    put_one = _packer(1, kind)
    for position, value in zip(positions, values, strict=True):
        put_one(buffer, start + size * position, value)
