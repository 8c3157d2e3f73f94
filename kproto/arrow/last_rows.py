"""The last row of each key: what remains of many commits of the same offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kproto.arrow.schemas import COMMITS, LATEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

COUNTED_STATES = ("none", "committed")
"""The transaction states whose commits count (LF-32)."""
PENDING_ROWS_MIN = 1 << 16
"""Rows that are collected before rows with the same key are dropped."""
PARTITION_BITS = 32
"""Width of a partition number."""


class LastRows:
    """Takes rows of `COMMITS` in the order of offsets; keeps the last one of each group, topic and partition.

    A tombstone is kept too: it removes the row before it (LF-31). Commits of aborted and of open transactions do not
    count, unless ``states`` says so.
    """

    def __init__(self, states: Sequence[str] = COUNTED_STATES) -> None:
        self._states = pa.array(states)
        self._kept = COMMITS.arrow().empty_table()
        self._pending: list[pa.Table] = []
        self._pending_count = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Take the next rows."""
        counted = pc.is_in(rows["txn_state"], self._states)
        table = pa.Table.from_batches([rows]).filter(counted) if counted.false_count else pa.Table.from_batches([rows])
        if not len(table):
            return
        self._pending.append(_last_of(table))
        self._pending_count += len(self._pending[-1])
        if self._pending_count > max(PENDING_ROWS_MIN, len(self._kept)):
            self._merge()

    def rows(self) -> pa.Table:
        """Return the kept rows of `COMMITS` in the order of offsets."""
        self._merge()
        return self._kept

    def latest(self) -> pa.Table:
        """Return rows of `LATEST`: the offsets that are valid after the last row."""
        rows = self.rows()
        return rows.filter(pc.invert(rows["tombstone"])).select(LATEST.names)

    def _merge(self) -> None:
        self._kept = _last_of(pa.concat_tables([self._kept, *self._pending]).combine_chunks())
        self._pending, self._pending_count = [], 0


def _last_of(rows: pa.Table) -> pa.Table:
    codes = _key_numbers(rows)
    last = np.zeros(codes.max(initial=-1) + 1, np.int64)
    last[codes] = np.arange(len(rows))  # numpy assigns in order: of equal codes, the last row wins
    return rows.take(pa.array(np.sort(last)))


def _key_numbers(rows: pa.Table) -> NDArray[np.int64]:
    """Return for each row a number of its group, topic and partition, from 0.

    Arrow numbers the values of one column by hashing (a dictionary encoding). Keys of several columns are packed into
    one int64 column in two steps: group and topic are numbered, their pairs are numbered, and the number of the pair
    takes the high 32 bits above the partition.
    """
    group, topic = (_codes(rows[name].combine_chunks()) for name in ("group_id", "topic"))
    pairs = _codes(pa.array(group * (topic.max(initial=0) + 1) + topic))
    partition = rows["partition"].to_numpy().astype(np.int64) & 0xFFFFFFFF
    return _codes(pa.array(pairs << PARTITION_BITS | partition))


def _codes(column: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    encoded = column.dictionary_encode()
    found = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    numbers: NDArray[np.int64] = found.indices.to_numpy().astype(np.int64)
    return numbers
