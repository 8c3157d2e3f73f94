"""The highest offset and the number of rows of each partition, counted while the rows pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

Partition = tuple[Any, ...]


class CountedRows:
    """Counts rows by the columns of their partition, and keeps the highest offset in another column."""

    def __init__(self, partition: Sequence[str], offset: str) -> None:
        self._partition = list(partition)
        self._offset = offset
        self.by_partition: dict[Partition, tuple[int, int]] = {}
        """The highest offset and the number of rows."""

    def add(self, rows: pa.RecordBatch) -> None:
        offset = self._offset
        counted = pa.table(rows.select([*self._partition, offset]).columns, names=[*self._partition, offset])
        for row in counted.group_by(self._partition).aggregate([(offset, "max"), (offset, "count")]).to_pylist():
            partition = tuple(row[name] for name in self._partition)
            self.add_counts({partition: (row[f"{offset}_max"], row[f"{offset}_count"])})

    def add_counts(self, by_partition: dict[Partition, tuple[int, int]]) -> None:
        """Add what another one has counted."""
        for partition, (highest, count) in by_partition.items():
            before, counted = self.by_partition.get(partition, (highest, 0))
            self.by_partition[partition] = max(before, highest), counted + count
