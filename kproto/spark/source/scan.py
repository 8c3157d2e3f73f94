"""View ``scan``: the rows of several tables from one pass over a log, which jobs share.

Theory of operation. A data source of Spark has one schema, so a row of a scan is a row of one of several tables, which
`ROW_OF` names. The columns of commits, of which there are most rows, are columns of the scan; each other table is one
column, a struct. What a job does not need is not returned, but decoded, checked and counted: each range that is decoded
has a row of `COVERAGE`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kproto.arrow.batch_rows import batch_rows, rows_of_block
from kproto.arrow.decoding import View
from kproto.arrow.last_rows import COUNTED_STATES, LastRows
from kproto.arrow.reading import RangeReader
from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES, Table
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark.schemas import COVERAGE, spark_schema
from kproto.spark.source.coverage import coverage_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql.types import StructType

    from kproto.logs.files import PartitionDirectory
    from kproto.logs.ranges import OffsetRange
    from kproto.spark.source.options import Options
    from kproto.spark.source.plan import Task

    Batches = Iterator[pa.RecordBatch]

ROW_OF = "row_of"
"""The column with the name of the table that a row is of."""
NESTED = (GROUP_METADATA, LOG_BATCHES, COVERAGE)
"""The tables that are columns of a scan."""
POSITIONS = {COMMITS.name: "log_offset", GROUP_METADATA.name: "log_offset", LOG_BATCHES.name: "last_offset"}


@dataclass(frozen=True)
class Scan:
    """What a scan returns beside coverage: the tables are `COMMITS`, `GROUP_METADATA` and `LOG_BATCHES`, by name."""

    after: Mapping[str, Mapping[str, int]]
    """The tables to return, each with the offset in each directory up to which its rows are left out."""
    last_commits: bool = False
    """Whether, of commits, the last counted and the last pending one of each key in each task are enough."""
    markers_only: bool = False
    """Whether, of batches of the offsets topic, the end markers of transactions are enough."""
    groups: tuple[str, ...] = ()
    """The groups whose rows are returned; empty: all."""
    partitions: tuple[int, ...] | None = None
    """The partitions of the offsets topic that are decoded; None: all."""
    headers: bool = False
    """Whether the batches of all partitions that are not decoded are returned, also of other topics."""
    of_groups: pa.Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "of_groups", pa.array(self.groups, pa.string()))

    def to_json(self) -> str:
        """Return the value of the option ``scan``."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "of_groups"})

    @classmethod
    def from_json(cls, text: str) -> Scan:
        """Return what `to_json` wrote.

        Raises:
            ValueError: something else wrote it.
        """
        try:
            values: dict[str, Any] = json.loads(text)
            values["groups"] = tuple(values["groups"])
            values["partitions"] = None if values["partitions"] is None else tuple(values["partitions"])
            return cls(**values)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{text!r} is no scan of kproto.spark.log_input") from error

    def decodes(self, partition: PartitionDirectory) -> bool:
        """Return whether the records of a partition are decoded."""
        return partition.topic == OFFSETS_TOPIC and (self.partitions is None or partition.number in self.partitions)

    def reads(self, partition: PartitionDirectory) -> bool:
        return self.headers or self.decodes(partition)


def scan_schema() -> StructType:
    """Return the Spark schema of the view."""
    from pyspark.sql.types import StringType, StructType

    schema = StructType([*StructType().add(ROW_OF, StringType()).fields, *spark_schema(COMMITS).fields])
    for table in NESTED:
        schema = schema.add(table.name, spark_schema(table))
    return schema


def scan_rows(task: Task, options: Options, scan: Scan) -> Batches:
    """Yield the rows of a task.

    Raises:
        CorruptLog, NoLog, MissingPackage, OSError: while iterating: as `kproto.arrow.reading.RangeReader`.
    """
    last, pending = LastRows(COUNTED_STATES), LastRows(("pending",))
    for wanted in task.ranges:
        if not scan.decodes(wanted.partition):
            for rows in batch_rows(wanted):
                yield from _made(LOG_BATCHES, rows, wanted, scan)
            continue
        reader = RangeReader(wanted, View.RECORDS, decoder=options.decoder, check_crc=options.check_crc)
        for decoded in reader:
            if LOG_BATCHES.name in scan.after:
                yield from _made(LOG_BATCHES, _batches(reader, wanted, markers_only=scan.markers_only), wanted, scan)
            if GROUP_METADATA.name in scan.after:
                yield from _made(GROUP_METADATA, _of_groups(decoded.groups, scan), wanted, scan)
            commits = _of_groups(decoded.rows, scan) if COMMITS.name in scan.after else None
            if commits is not None and scan.last_commits:
                last.add(commits)
                pending.add(commits)
            elif commits is not None:
                yield from _made(COMMITS, commits, wanted, scan)
        yield _row_batch(COVERAGE, coverage_row(wanted, reader))
    for kept in (last, pending):
        for rows in kept.rows().to_batches():
            yield _row_batch(COMMITS, rows)


def _batches(reader: RangeReader, wanted: OffsetRange, *, markers_only: bool) -> pa.RecordBatch:
    assert reader.block is not None, "the reader has yielded"
    start = max(wanted.start_offset, reader.blocks.next_offset)
    rows = rows_of_block(reader.block, wanted.partition.topic, wanted.partition.number, start, wanted.end_offset)
    return rows.filter(rows["control"]) if markers_only else rows


def _of_groups(rows: pa.RecordBatch | None, scan: Scan) -> pa.RecordBatch:
    assert rows is not None, "the view has both tables"
    return rows.filter(pc.is_in(rows["group_id"], scan.of_groups)) if scan.groups else rows


def _made(table: Table, rows: pa.RecordBatch, wanted: OffsetRange, scan: Scan) -> Batches:
    """Yield the rows after the offset up to which they are left out."""
    mark = scan.after.get(table.name, {}).get(wanted.partition.path.name)
    if mark is not None:
        rows = rows.filter(pc.greater(rows[POSITIONS[table.name]], mark))
    if len(rows):
        yield _row_batch(table, rows)


def _row_batch(table: Table, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a table as rows of a scan."""
    count = len(rows)
    columns = [pa.repeat(table.name, count)]
    commits = COMMITS.arrow()
    columns += rows.columns if table is COMMITS else [pa.nulls(count, one.type) for one in commits]
    names = [ROW_OF, *commits.names]
    for nested in NESTED:
        fields = list(nested.arrow())
        is_it = nested is table
        columns.append(
            pa.StructArray.from_arrays(rows.columns, fields=fields) if is_it else pa.nulls(count, pa.struct(fields))
        )
        names.append(nested.name)
    return pa.RecordBatch.from_arrays(columns, names=names)
