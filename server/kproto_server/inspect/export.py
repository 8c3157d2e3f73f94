"""`kproto log export`: the rows of a log as a file of Parquet or Arrow, for DuckDB, polars or pandas.

The decoder is that of `kproto.spark`, which works on many records at once; neither Spark nor Java is needed, but numpy
and pyarrow are. Tables and columns are those of `kproto.spark.schemas`.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kproto.errors import NoLog
from kproto.spark.decode import files
from kproto.spark.decode.last_rows import LastRows
from kproto.spark.decode.reading import Range, RangeBlocks, RangeReader
from kproto.spark.decode.tables import View
from kproto.spark.schemas import COMMITS, GROUP_METADATA, LATEST, LOG_BATCHES
from kproto.spark.source.rows import batch_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto.spark.decode.files import Partition

    Told = Callable[[str], None]

TABLES = {table.name: table for table in (COMMITS, GROUP_METADATA, LOG_BATCHES, LATEST)}
READ_AS = {COMMITS.name: View.COMMITS, LATEST.name: View.COMMITS, GROUP_METADATA.name: View.GROUPS}
PARQUET, ARROW = ".parquet", ".arrow"
ENDINGS = (PARQUET, ARROW)


class Exported(NamedTuple):
    """What was written."""

    table: str
    rows: int
    partitions: int
    output: str

    def __str__(self) -> str:
        partitions = f"{self.partitions} partition" + ("s" if self.partitions != 1 else "")
        return f"{self.rows} rows of {self.table}, from {partitions}, in {self.output}"


def export(name: str, table: str, partition: int | None, output: str, note: Told) -> Exported:
    """Write the rows of a log to a file, whose ending tells the format; ``note`` is told of what no row is made of.

    Raises:
        CorruptLog: the log is not as it must be; no file is left.
        NoLog: there is no log, or not that partition.
        MissingPackage: a compression needs a package that is not installed.
        OSError: a file can't be read or written.
    """
    found = _partitions(name, table, partition)
    with _writer(Path(output), TABLES[table].arrow()) as writer:
        rows = 0
        for batch in _rows(found, table, note):
            writer.write_batch(batch)
            rows += len(batch)
    return Exported(table, rows, len(found), output)


def _partitions(name: str, table: str, partition: int | None) -> list[Partition]:
    found = files.find_partitions(name, None if table == LOG_BATCHES.name else files.OFFSETS_TOPIC)
    chosen = [one for one in found if partition in (None, one.number)]
    if not chosen:
        raise NoLog(f"{name!r} holds no partition {partition}")
    return chosen


def _rows(partitions: list[Partition], table: str, note: Told) -> Iterator[pa.RecordBatch]:
    for partition in partitions:
        whole = Range(partition, 0, None)
        if table == LOG_BATCHES.name:
            yield from batch_rows(whole)
            continue
        reader = RangeReader(whole, READ_AS[table])
        if table == LATEST.name:
            last = LastRows()
            for decoded in reader:
                last.add(decoded.rows)
            yield from last.latest().to_batches()
        else:
            yield from (decoded.rows for decoded in reader)
        _tell_of(partition, reader, reader.blocks, note)


def _tell_of(partition: Partition, reader: RangeReader, blocks: RangeBlocks, note: Told) -> None:
    label = partition.path.name
    if blocks.torn_size:
        note(f"torn tail: {label}: {blocks.torn_size} bytes behind the last batch")
    for kind, count in sorted(reader.counts.skipped.items()):
        note(f"{label}: {count} records of type {kind}, which no table has")


@contextmanager
def _writer(output: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter | pa.RecordBatchFileWriter]:
    """Write beside the file, and put it there when it is whole."""
    beside = output.with_name(f"{output.name}.part")
    with open(beside, "wb") as file:  # opened here, so that an error names the file
        try:
            is_parquet = output.suffix == PARQUET
            made = pq.ParquetWriter(file, schema, compression="zstd") if is_parquet else pa.ipc.new_file(file, schema)
            with made as writer:
                yield writer
        except BaseException:
            beside.unlink()
            raise
    beside.replace(output)
