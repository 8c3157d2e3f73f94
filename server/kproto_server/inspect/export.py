"""`kproto log export`: write the rows of a log to a Parquet or Arrow file, for DuckDB, polars or pandas.

`kproto.arrow` decodes the log and declares the tables. It needs numpy and pyarrow (extra ``kproto[arrow]``).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kproto.arrow.batch_rows import batch_rows
from kproto.arrow.decoding import View
from kproto.arrow.last_rows import LastRows
from kproto.arrow.reading import RangeReader
from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LATEST, LOG_BATCHES, SHARE_STATES
from kproto.logs.files import find_partitions
from kproto.logs.ranges import OffsetRange
from kproto.output_file import completed
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from kproto_server.inspect.directory import with_number
from kproto_server.inspect.share_states import share_state_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto.logs.files import PartitionDirectory

    Notify = Callable[[str], None]

TABLES = {table.name: table for table in (COMMITS, GROUP_METADATA, LOG_BATCHES, LATEST, SHARE_STATES)}
VIEWS = {COMMITS.name: View.COMMITS, LATEST.name: View.COMMITS, GROUP_METADATA.name: View.GROUPS}
TOPICS: dict[str, tuple[str, ...] | None] = {LOG_BATCHES.name: None, SHARE_STATES.name: (SHARE_STATE_TOPIC,)}
"""The topics of tables, if not the offsets topic; None: all."""
PARQUET, ARROW = ".parquet", ".arrow"
ENDINGS = (PARQUET, ARROW)


class Exported(NamedTuple):
    """Counts of what was written."""

    table: str
    rows: int
    partitions: int
    output: str

    def __str__(self) -> str:
        partitions = f"{self.partitions} partition" + ("s" if self.partitions != 1 else "")
        return f"{self.rows} rows of {self.table}, from {partitions}, in {self.output}"


def export(path: str, table: str, partition: int | None, output: str, note: Notify) -> Exported:
    """Write the rows of a log to a file, whose ending gives the format; ``note`` receives what no table has.

    Raises:
        CorruptLog: the log is invalid; no file is left.
        NoLog: there is no log, or not that partition.
        MissingPackage: a compression needs a package that is not installed.
        OSError: a file cannot be read or written.
    """
    logs = with_number(find_partitions(path, TOPICS.get(table, (OFFSETS_TOPIC,))), path, partition)
    with _writer(output, TABLES[table].arrow()) as writer:
        rows = 0
        for batch in _rows(logs, table, note):
            writer.write_batch(batch)
            rows += len(batch)
    return Exported(table, rows, len(logs), output)


def _rows(logs: list[PartitionDirectory], table: str, note: Notify) -> Iterator[pa.RecordBatch]:
    for log in logs:
        whole = OffsetRange(log, 0, None)
        if table == LOG_BATCHES.name:
            yield from batch_rows(whole)
            continue
        if table == SHARE_STATES.name:
            yield from share_state_rows(log, note)
            continue
        reader = RangeReader(whole, VIEWS[table], only_last=table == LATEST.name)
        if table == LATEST.name:
            last = LastRows()
            for decoded in reader:
                last.add(decoded.rows)
            yield from last.latest().to_batches()
        else:
            yield from (decoded.rows for decoded in reader)
        if reader.blocks.torn is not None:
            note(str(reader.blocks.torn))
        for kind, count in sorted(reader.counts.skipped.items()):
            note(f"{log.path.name}: {count} records of type {kind}, which no table has")


@contextmanager
def _writer(output: str, schema: pa.Schema) -> Iterator[pq.ParquetWriter | pa.RecordBatchFileWriter]:
    """Write to a file that gets its name when it is complete; to a pipe or a device in place."""
    with completed(output) as path, open(path, "wb") as file:  # opened here, so that an error names the file
        is_parquet = output.endswith(PARQUET)
        made = pq.ParquetWriter(file, schema, compression="zstd") if is_parquet else pa.ipc.new_file(file, schema)
        with made as writer:
            yield writer
