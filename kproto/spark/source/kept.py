"""Rows of a scan as Parquet files, which tasks write instead of sending the rows to Spark.

Theory of operation. A row that goes from a task through Spark's memory to a file is converted four times; a task that
writes the file itself converts it once. Each task writes one file for each table, or each table and day. A file gets
its name when it is complete, and the name depends on the task alone: of a task that was repeated, there is one file.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kproto.arrow.schemas import Table
    from kproto.logs.ranges import OffsetRange

ROWS_MAX = 1 << 18
"""Rows of a table that a task collects before it writes them: some tens of megabytes."""
OPEN_MAX = 64
"""Files of one task that are open at the same time: the days of a topic are those of its producers' clocks, and may be
thousands. The rows of further days wait in memory for the end of the task, which bounds them."""
SMALL_BYTES = 4 << 20
"""The size up to which the files of a table become one. Spark counts as much for opening a file."""
REPEATED = ["group_id", "topic", "metadata", "txn_state", "codec", "kind", "protocol_type", "protocol"]
"""The columns whose values repeat so often that a dictionary of them pays."""
DAY_US = 24 * 3600 * 1_000_000


class Writer:
    """Writes the rows of one table and one task below a directory.

    ``day_of`` is the time whose day, in UTC, is the folder ``date=YYYY-MM-DD`` of a row: 1970-01-01 if it has none.
    """

    def __init__(self, table: Table, folder: Path, task: str, *, day_of: str | None) -> None:
        self._table = table
        self._folder = folder / table.name
        self._task = task
        self._day_of = day_of
        self._waiting: dict[str, list[pa.RecordBatch]] = {}
        self._count = 0
        self._open: dict[str, pq.ParquetWriter] = {}
        self._beside = f".{task}.{uuid.uuid4().hex}"

    def add(self, rows: pa.RecordBatch) -> None:
        for day, part in self._by_day(rows):
            self._waiting.setdefault(day, []).append(part)
        self._count += len(rows)
        if self._count >= ROWS_MAX:
            self._write()

    def close(self) -> None:
        """Write what is left, and name the files."""
        self._write()
        for writer in self._open.values():
            writer.close()
        for day, parts in self._waiting.items():
            with self._opened(day) as writer:
                writer.write_table(pa.Table.from_batches(parts))
        for day in (*self._open, *self._waiting):
            (self._folder / day / self._beside).replace(self._folder / day / f"part-{self._task}.parquet")

    def _by_day(self, rows: pa.RecordBatch) -> Iterable[tuple[str, pa.RecordBatch]]:
        if self._day_of is None:
            return [("", rows)]
        days = rows[self._day_of].cast(pa.int64()).fill_null(0).to_numpy() // DAY_US
        found = np.unique(days)
        if len(found) == 1:
            return [(_day(found[0]), rows)]
        return [(_day(day), rows.filter(pa.array(days == day))) for day in found]

    def _write(self) -> None:
        for day in list(self._waiting):
            if day not in self._open:
                if len(self._open) == OPEN_MAX:
                    continue
                self._open[day] = self._opened(day)
            self._open[day].write_table(pa.Table.from_batches(self._waiting.pop(day)))
        self._count = 0

    def _opened(self, day: str) -> pq.ParquetWriter:
        (self._folder / day).mkdir(parents=True, exist_ok=True)
        return pq.ParquetWriter(
            self._folder / day / self._beside,
            self._table.arrow(),
            compression="snappy",
            use_dictionary=[name for name in REPEATED if name in self._table.names],
        )


def _day(number: np.int64) -> str:
    return f"date={np.datetime64(int(number), 'D')}"


def task_name(ranges: Sequence[OffsetRange]) -> str:
    """Return a name that no other task of the same read has."""
    first = ranges[0]
    return f"{first.partition.path.name}-{first.start_offset}"


def combine_small(folder: Path) -> None:
    """Replace the files of a table by one if they are small together.

    Spark takes some milliseconds for each file that it lists, plans and opens, whatever its size.
    """
    paths = sorted(folder.glob("part-*.parquet"))
    if len(paths) > 1 and sum(path.stat().st_size for path in paths) <= SMALL_BYTES:
        merge([str(path) for path in paths], str(folder / "all.parquet"))
        for path in paths:
            path.unlink()


def merge(paths: Sequence[str], target: str, see: Callable[[pa.RecordBatch], None] = lambda _rows: None) -> None:
    """Write the rows of some files, in this order, to a new one, as tables have them (zstd); ``see`` is given them."""
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with pq.ParquetWriter(beside, pq.read_schema(paths[0]), compression="zstd") as writer:
        waiting: list[pa.RecordBatch] = []
        for rows in _batches_of(paths):
            see(rows)
            waiting.append(rows)
            if sum(map(len, waiting)) >= ROWS_MAX:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))
    beside.replace(path)


def _batches_of(paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(ROWS_MAX)
