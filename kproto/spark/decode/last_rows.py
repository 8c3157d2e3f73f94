"""The last row of each key: what is left of many commits of the same offsets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kproto.spark.schemas import COMMITS, LATEST

COUNTED_STATES = ("none", "committed")
"""What a transaction has come to if its commits count (LF-32)."""
PENDING_ROWS_MIN = 1 << 18
"""Rows that are kept before they are thinned: thinning costs as much for each."""


class LastRows:
    """Takes rows of `COMMITS` in the order of offsets; keeps the last that counts of each group, topic and partition.

    A tombstone is such a row too: it takes away what came before it (LF-31). Commits of transactions that were aborted,
    or that have no end yet, are not.
    """

    def __init__(self) -> None:
        self._kept = COMMITS.arrow().empty_table()
        self._pending: list[pa.RecordBatch] = []
        self._pending_count = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Take the next rows."""
        counted = pc.is_in(rows["txn_state"], pa.array(COUNTED_STATES))
        self._pending.append(rows if pc.all(counted).as_py() is not False else rows.filter(counted))
        self._pending_count += len(rows)
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
        rows = pa.concat_tables([self._kept, pa.Table.from_batches(self._pending, COMMITS.arrow())]).combine_chunks()
        key = np.zeros(len(rows), np.int64)
        for name in ("group_id", "topic", "partition"):
            codes = rows[name].combine_chunks().dictionary_encode()
            codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
            key = key * max(1, len(codes.dictionary)) + codes.indices.to_numpy()
            # numbered anew, so that the next product stays within 64 bits
            _, key = np.unique(key, return_inverse=True)
        _, from_end = np.unique(key[::-1], return_index=True)
        last = np.sort(len(rows) - 1 - from_end)
        self._kept = rows.take(pa.array(last))
        self._pending, self._pending_count = [], 0
