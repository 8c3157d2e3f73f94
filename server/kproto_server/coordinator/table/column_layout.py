"""The columns of a record: which values are stored for each entry, which once for all entries, and which not at all.

The entries of one commit have the same commit timestamp, usually the same leader epoch or none, no metadata and no
expire timestamp. The *column flags* of a record have a bit for each exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any

TIME_EACH = 1
"""A commit timestamp for each entry. Without it, the record's timestamp is that of all entries."""
EXPIRY_SAME = 2
EXPIRY_EACH = 4
"""An expire timestamp for each entry, and a flag whether it has one."""
EPOCH_SAME = 8
EPOCH_EACH = 16
METADATA = 32
EXPIRIES = EXPIRY_SAME | EXPIRY_EACH

NO_EPOCH = -1


Columns = tuple[Sequence[int], Sequence[int], Sequence[str], Sequence[int], Sequence[int | None]]
"""The values of entries in the order of their keys: offsets, leader epochs, metadata, commit and expire timestamps."""

NO_VALUES: Columns = (), (), (), (), ()


def column_flags_of(columns: Columns) -> int:
    """Return the fewest columns that can store these values."""
    offsets, epochs, metadata, times, expiries = columns
    count = len(offsets)
    column_flags = 0 if times.count(times[0]) == count else TIME_EACH
    if expiries.count(None) != count:
        column_flags |= EXPIRY_SAME if expiries.count(expiries[0]) == count else EXPIRY_EACH
    if epochs.count(NO_EPOCH) != count:
        column_flags |= EPOCH_SAME if epochs.count(epochs[0]) == count else EPOCH_EACH
    if metadata.count("") != count:
        column_flags |= METADATA
    return column_flags


class ColumnLayout:
    """The positions of the values in a record with these columns and a number of entries."""

    __slots__ = ("epochs", "expiries", "flags", "offsets", "pack", "pack_into", "size", "times", "unpack_from")

    def __init__(self, column_flags: int, count: int) -> None:
        columns = []
        position = 0

        def take(same: int, each: int, kind: str, size: int) -> int:
            nonlocal position
            number = count if column_flags & each else 1 if column_flags & same else 0
            columns.append(f"{number}{kind}")
            position += number * size
            return position - number * size

        self.times: int = take(0, TIME_EACH, "q", 8)
        self.expiries: int = take(EXPIRY_SAME, EXPIRY_EACH, "q", 8)
        self.flags: int = take(0, EXPIRY_EACH, "?", 1)
        self.epochs: int = take(EPOCH_SAME, EPOCH_EACH, "i", 4)
        self.offsets: int = position
        position += 8 * count
        columns.append(f"{count}q")
        take(0, METADATA, "I", 4)
        self.size: int = position
        """The size of the columns. That of metadata has lengths only: the texts follow the columns."""
        values = Struct("<" + "".join(columns))
        self.pack: Callable[..., bytes] = values.pack
        self.pack_into: Callable[..., None] = values.pack_into
        self.unpack_from: Callable[..., tuple[Any, ...]] = values.unpack_from


@lru_cache(maxsize=1024)
def column_layout_of(column_flags: int, count: int) -> ColumnLayout:
    return ColumnLayout(column_flags, count)


def values_of(column_flags: int, columns: Columns) -> list[Any]:
    """Return the arguments of `ColumnLayout.pack`, without the lengths of metadata."""
    offsets, epochs, _, times, expiries = columns
    values: list[Any] = []
    if column_flags & TIME_EACH:
        values += times
    if column_flags & EXPIRY_SAME:
        values.append(expiries[0])
    elif column_flags & EXPIRY_EACH:
        values += [expiry or 0 for expiry in expiries]
        values += [expiry is not None for expiry in expiries]
    if column_flags & EPOCH_SAME:
        values.append(epochs[0])
    elif column_flags & EPOCH_EACH:
        values += epochs
    values += offsets
    return values


def columns_of(
    column_flags: int, count: int, min_commit_ms: int, values: tuple[Any, ...], metadata: Sequence[str]
) -> Columns:
    """Return the columns from the result of `ColumnLayout.unpack_from`."""
    end = 0

    def take(each: int) -> Sequence[Any] | None:
        nonlocal end
        if not column_flags & each:
            return None
        end += count
        return values[end - count : end]

    times = take(TIME_EACH) or (min_commit_ms,) * count
    expiries: Sequence[int | None] = (None,) * count
    if column_flags & EXPIRY_SAME:
        expiries = (values[end],) * count
        end += 1
    elif column_flags & EXPIRY_EACH:
        deadlines, flags = values[end : end + count], values[end + count : end + 2 * count]
        expiries = [deadline if flag else None for deadline, flag in zip(deadlines, flags, strict=True)]
        end += 2 * count
    epochs = (NO_EPOCH,) * count
    if column_flags & EPOCH_SAME:
        epochs = (values[end],) * count
        end += 1
    elif column_flags & EPOCH_EACH:
        epochs = values[end : end + count]
        end += count
    return values[end : end + count], epochs, metadata, times, expiries
