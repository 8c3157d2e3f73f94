"""The last row of each key: what is left of many commits of the same offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kproto.spark.schemas import COMMITS, LATEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

COUNTED_STATES = ("none", "committed")
"""What a transaction has come to if its commits count (LF-32)."""
PENDING_ROWS_MIN = 1 << 16
"""Rows left of blocks that are kept before those of the same keys are dropped."""
PARTITION_BITS = 32
"""Room for a partition's number."""


class LastRows:
    """Takes rows of `COMMITS` in the order of offsets; keeps the last that counts of each group, topic and partition.

    A tombstone is such a row too: it takes away what came before it (LF-31). Commits of transactions that were aborted,
    or that have no end yet, are not.
    """

    def __init__(self) -> None:
        self._kept = COMMITS.arrow().empty_table()
        self._pending: list[pa.Table] = []
        self._pending_count = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Take the next rows."""
        counted = pc.is_in(rows["txn_state"], pa.array(COUNTED_STATES))
        table = pa.Table.from_batches([rows]).filter(counted) if counted.false_count else pa.Table.from_batches([rows])
        self._pending.append(_last_of(table))
        self._pending_count += len(self._pending[-1])
        if self._pending_count > max(PENDING_ROWS_MIN, len(self._kept)):
            self._thin()

    def rows(self) -> pa.Table:
        """Return the rows of `COMMITS` that are left, in the order of offsets."""
        self._thin()
        return self._kept

    def latest(self) -> pa.Table:
        """Return rows of `LATEST`: the offsets that there are at the end of what was added."""
        rows = self.rows()
        return rows.filter(pc.invert(rows["tombstone"])).select(LATEST.names)

    def _thin(self) -> None:
        self._kept = _last_of(pa.concat_tables([self._kept, *self._pending]).combine_chunks())
        self._pending, self._pending_count = [], 0


def _last_of(rows: pa.Table) -> pa.Table:
    codes = _numbered(rows)
    last = np.zeros(codes.max(initial=-1) + 1, np.int64)
    last[codes] = np.arange(len(rows))  # of places with the same code, the last one stays
    return rows.take(pa.array(np.sort(last)))


def _numbered(rows: pa.Table) -> NDArray[np.int64]:
    """Return for each row the number of its group, topic and partition, from 0 on.

    Arrow numbers by hashing; what it numbers is first made of pairs of numbers that are small enough.
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
