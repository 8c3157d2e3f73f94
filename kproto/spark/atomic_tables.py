"""Tables of a format whose own log makes a write atomic: `DeltaTables` and `IcebergTables`.

Theory of operation. A run reads the version of a table, computes the marks of the table, and appends the rows after the
marks on the condition that the table still has that version. Of two runs that overlap, the first one commits; the
second fails. Its rows are added by the next run, so no row is written twice.

Rows are read several times, and the log may belong to a running broker. All reads of commits therefore end where the
log ended at the beginning: a transaction that begins later is not read.

A later version of kproto may add columns to a table. They are null in rows that were written before, and are added to a
table when it is next written.
"""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from kproto.arrow.schemas import COMMITS
from kproto.errors import NoLog
from kproto.logs.locations import location, with_listing
from kproto.spark.engine import F
from kproto.spark.java import cause_of, first_line, hadoop_configuration, java_of
from kproto.spark.publish import TablesError
from kproto.spark.schemas import select_columns
from kproto.spark.tables import GROWING, Added, Origin, by_date, check_it_is_the_same, later, marks_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from kproto.arrow.schemas import Table
    from kproto.spark.tables import Growing, Marks, Source


class State(NamedTuple):
    """The three tables below a path or URI at the beginning of a run."""

    versions: Mapping[str, int | None]
    """By table; None: there is no table yet."""
    marks: dict[str, Marks]
    origin: Origin


class AtomicTables(ABC):
    """The tables below a path or URI; each is in the directory of its name."""

    metadata_folder: str
    """The directory that each table of the format has."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root

    def folder(self, name: str) -> str:
        """Return the path or URI of a table."""
        return f"{self.root}/{name}"

    @abstractmethod
    def version(self, name: str) -> int | None:
        """Return the version of a table; None: there is no table."""

    @abstractmethod
    def rows(self, name: str) -> DataFrame:
        """Return all rows of a table that exists."""

    @abstractmethod
    def notes(self, name: str) -> list[str]:
        """Return what the newest writes of a table noted, the newest first."""

    @abstractmethod
    def size(self) -> tuple[int, int]:
        """Return the number and the bytes of the files of the three tables."""

    @abstractmethod
    def append(self, table: Table, rows: DataFrame, version: int | None, note: str) -> int:
        """Append rows with their `date` to a table that has a version (None: a new one); return their number.

        Raises:
            TablesError: the table has another version by now.
        """

    @abstractmethod
    def replace(self, table: Table, rows: DataFrame) -> int:
        """Replace all rows of a table, in one step; return their number."""

    @abstractmethod
    def compact(self, name: str) -> int:
        """Rewrite the small files of a table to larger ones; return by how many their number fell."""

    def read(self, table: Table) -> DataFrame:
        """Return the rows of a table in its present columns; those that it lacks are null."""
        rows = self.rows(table.name)
        missing = [column for column in table.columns if column.name not in rows.columns]
        for column in missing:
            rows = rows.withColumn(column.name, F.lit(None).cast(column.type.value))
        return select_columns(table, rows)

    def marks(self, grown: Growing) -> Marks:
        """Return the highest offsets in a table that exists, by partition."""
        return {partition: mark for partition, (mark, _) in marks_of(grown, self.rows(grown.name)).items()}

    def origin(self) -> Origin:
        """Return what the last write of the commits says about its log."""
        notes = self.notes(COMMITS.name)
        return Origin.from_json(json.loads(notes[0])["origin"] if notes else None)

    def state(self) -> State:
        """Return the state of the tables before a run reads the log."""
        versions = {grown.name: self.version(grown.name) for grown in GROWING}
        marks: dict[str, Marks] = {}
        for grown in GROWING:  # after the versions: see above
            marks[grown.name] = {}
            if versions[grown.name] is not None:
                marks[grown.name] = self.marks(grown)
        return State(versions, marks, self.origin() if versions[COMMITS.name] is not None else Origin())

    def write(self, source: Source, before: State) -> dict[str, Added]:
        """Append the new rows of a log; return the counts by table.

        Args:
            before: the state of the tables before the log was read.

        Raises:
            TablesError: the log ends before the tables, so it is another log; or another run wrote at the same time.
        """
        check_it_is_the_same(source, before.marks, self.root, before.origin.identity)
        added = {}
        for grown in GROWING:
            rows, waiting = later(grown, source, before.marks[grown.name]), 0
            if grown.table is COMMITS:
                rows, waiting = _settled(self.spark, rows, source.ends)
            origin = source.origin.after(before.origin, waiting=waiting)
            version = before.versions[grown.name]
            count = 0
            is_news = grown.table is COMMITS and origin != before.origin  # also if all new commits wait
            if version is None or is_news or not rows.isEmpty():
                note = json.dumps({"run": str(uuid.uuid4()), "origin": origin.to_json()})
                count = self.append(grown.table, by_date(grown, rows), version, note)
            added[grown.name] = Added(count, waiting)
        return added

    def taken(self, name: str) -> TablesError:
        """Return the error of a run that another one overtook."""
        return TablesError(f"{self.folder(name)}: another `tables` wrote there meanwhile: run it again for the rest")


def has_tables(path: str, metadata_folder: str) -> bool:
    """Return whether a path or URI has tables of the format with that folder; it raises what `atomic_format` does."""
    root = location(path)
    if not root.is_dir():
        return False
    table = with_listing(root) / COMMITS.name
    return table.is_dir() and (table / metadata_folder).is_dir()


def has_remote_tables(spark: SparkSession, root: str, metadata_folder: str) -> bool:
    """Look for tables at a URI, with Hadoop's file systems as Spark configures them.

    Raises:
        NoLog: Spark cannot read from there.
    """
    try:
        folder = java_of(spark).org.apache.hadoop.fs.Path(f"{root}/{COMMITS.name}/{metadata_folder}")
        return bool(folder.getFileSystem(hadoop_configuration(spark)).listStatusIterator(folder).hasNext())
    except Exception as error:
        cause = cause_of(error)
        if cause is None:
            raise
        if "FileNotFoundException" not in cause.toString():
            raise NoLog(f"{root}: Spark cannot read it: {first_line(cause)}") from None
        return False


def _settled(spark: SparkSession, commits: DataFrame, ends: Mapping[int | None, int]) -> tuple[DataFrame, int]:
    """Return the commits before the first pending one of each partition, and the number of the others."""
    known = _limits(spark, ends)
    read = commits.join(F.broadcast(known), "log_partition").where(F.col("log_offset") <= F.col("limit")).drop("limit")
    pending = read.where(F.col("txn_state") == "pending").groupBy("log_partition")
    first = {row["log_partition"]: row["limit"] for row in pending.agg(F.min("log_offset").alias("limit")).collect()}
    if not first:
        return read.select(*COMMITS.names), 0
    with_limit = read.join(F.broadcast(_limits(spark, first)), "log_partition", "left")
    is_before = F.col("limit").isNull() | (F.col("log_offset") < F.col("limit"))
    waiting = with_limit.where(~is_before).count()
    return with_limit.where(is_before).select(*COMMITS.names), waiting


def _limits(spark: SparkSession, offsets: Mapping[int | None, int]) -> DataFrame:
    return spark.createDataFrame(list(offsets.items()), "log_partition int, limit bigint")
