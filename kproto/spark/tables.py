"""Write a log to tables, Parquet (zstd) by date, Delta or Iceberg, and append only new rows to them.

Theory of operation. Partition and offset identify a record forever. The highest offset of each partition in a table,
its mark, therefore separates old rows from new ones. With Parquet the marks are in the state that is published together
with the files (`publish`). With Delta and Iceberg, whose own logs make a write atomic, they are computed from the table
(`atomic_tables`).

Of a log, the tasks that read it write the Parquet of each date themselves (`kproto.spark.source.kept`), and others
merge these files. Rows that go through Spark cost several times as much.

A pending commit may still become committed or aborted. Rows from the first pending commit of a partition on wait for a
run that finds the end of its transaction, as they do for a consumer with read_committed isolation.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES, Table
from kproto.logs.identity import LogIdentity
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark.engine import F
from kproto.spark.output import parquet_as_declared, spark_path
from kproto.spark.publish import Publication, TablesError
from kproto.spark.schemas import ddl, read_files, select_columns
from kproto.spark.source.counted import CountedRows
from kproto.spark.source.kept import merge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

DATE = "date"
"""The column by whose values, in UTC, the files of a table are in folders."""
NO_IDENTITY = LogIdentity(None, {}, {})
FILE_BYTES = 128 << 20
"""The size of a compacted file: what Spark reads in one task."""
SMALL_BYTES = 96 << 20
"""Files below it are compacted."""
ORIGIN = "origin"
"""The key of `Origin` in the state."""
TXN_STATE, PENDING = "txn_state", "pending"
Marks = dict[tuple[str | int, ...], int]
"""The highest offset in a table, by partition."""
Counts = dict[tuple[str | int, ...], tuple[int, int]]
"""The highest offset of new rows and their number, by partition."""


@dataclass(frozen=True)
class Growing:
    """A table that is written incrementally, and the columns that give the position of a row in the log."""

    table: Table
    partition: tuple[str, ...]
    last: str
    time: str
    """The column whose day, in UTC, becomes the partition ``date`` of the row."""

    @property
    def name(self) -> str:
        return self.table.name


BATCHES = Growing(LOG_BATCHES, ("topic", "partition"), "last_offset", "max_ts")
GROWING = (
    Growing(COMMITS, ("log_partition",), "log_offset", "log_ts"),
    Growing(GROUP_METADATA, ("log_partition",), "log_offset", "log_ts"),
    BATCHES,
)


@dataclass(frozen=True)
class Origin:
    """What tables know of the log that they were made from."""

    partitions: int = 0
    of_partitions: int | None = None
    """As in `kproto.spark.input.Coverage`."""
    waiting: int = 0
    """Commits that waited for the end of a transaction at the last run; from a cluster, offsets."""
    identity: LogIdentity = NO_IDENTITY

    def after(self, before: Origin, *, waiting: int) -> Origin:
        """Return what tables know that had ``before``."""
        return replace(self, waiting=self.waiting + waiting, identity=before.identity.merged(self.identity))

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "identity": self.identity._asdict()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any] | None) -> Origin:
        """Return an origin from the state of tables, which older versions of kproto wrote without it."""
        if found is None:
            return cls()
        return cls(**{**found, "identity": LogIdentity(**found["identity"])})


@dataclass(frozen=True)
class Source:
    """The log to write to tables."""

    table: Callable[[str, Marks], DataFrame]
    """Returns one of the three tables by name; of partitions with a mark, at least the rows after it."""
    ends: Mapping[int | None, int]
    """The last offset of each partition of the offsets topic."""
    origin: Origin = field(default_factory=Origin)
    topic_ends: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The last offset of each partition of all topics."""
    files: Path | None = None
    """The directory in which the rows after the marks are, by table and date; None: `table` returns them."""


@dataclass(frozen=True)
class Added:
    """What a run added to one table."""

    rows: int
    waiting: int
    """Rows that wait for the end of a transaction."""


def read(spark: SparkSession, root: Path, table: Table) -> DataFrame:
    """Return a table of a Parquet directory.

    Raises:
        TablesError: there are no tables in it, or the last write did not finish.
    """
    if not Publication(root).state():
        raise TablesError(f"{root}: it has no tables of kproto")
    folder = root / table.name
    return (
        select_columns(table, read_files(spark, table, folder))
        if folder.exists()
        else spark.createDataFrame([], ddl(table))
    )


def write_parquet(spark: SparkSession, source: Source, root: Path) -> dict[str, Added]:
    """Append the new rows of a log to the tables of a directory; return the counts by table.

    Raises:
        TablesError: another process is writing there, or the log ends before the tables, so it is another log.
    """
    return read_and_write_parquet(spark, lambda _folder, _marks: source, root)


def read_and_write_parquet(
    spark: SparkSession, read: Callable[[Path, Mapping[str, Marks]], Source], root: Path
) -> dict[str, Added]:
    """Read a log after the marks of the tables in a directory, and do what `write_parquet` does.

    Args:
        read: is given a directory for `Source.files`, which is removed afterwards, and the marks by table.
    """
    publication = Publication(root)
    with publication.writing():
        state = publication.state()
        marks = {grown.name: _read_marks(state.get(grown.name, [])) for grown in GROWING}
        before = Origin.from_json(state.get(ORIGIN))
        source = read(publication.scratch / "read", marks)
        check_it_is_the_same(source, marks, root, before.identity)
        added = {}
        for grown in GROWING:
            new, waiting = _stage(spark, grown, source, marks[grown.name], publication)
            marks[grown.name] |= {partition: mark for partition, (mark, _) in new.items()}
            added[grown.name] = Added(sum(count for _, count in new.values()), waiting)
        listed = {name: [[*key, mark] for key, mark in sorted(of.items())] for name, of in marks.items()}
        origin = source.origin.after(before, waiting=added[COMMITS.name].waiting)
        publication.publish(listed | {ORIGIN: origin.to_json()})
        return added


def _stage(
    spark: SparkSession, grown: Growing, source: Source, marks: Marks, publication: Publication
) -> tuple[Counts, int]:
    """Write the new rows that need not wait; return what `marks_of` does, and how many wait."""
    folder = publication.staged / grown.name
    if source.files is None:
        _save(grown, later(grown, source, marks), folder)
    else:
        counts, has_pending = _merge(spark, grown, source.files / grown.name, folder)
        if not has_pending:
            return counts, 0
    written, waiting = _settled(spark, grown, publication)
    return marks_of(grown, written), waiting


def _merge(spark: SparkSession, grown: Growing, files: Path, folder: Path) -> tuple[Counts, bool]:
    """Write the rows of the files of each date to files of about `FILE_BYTES`.

    Return what `marks_of` does, and whether a commit is pending: the tasks see each row, and Spark none.
    """
    folder.mkdir(parents=True)
    merged: list[tuple[list[str], str]] = []
    total_bytes = 0
    for date in sorted(files.glob("date=*")):
        parts: list[str] = []
        size = 0
        for path in sorted(date.glob("*.parquet")):
            if size > FILE_BYTES:
                merged.append((parts, _new_file(folder / date.name)))
                parts, size = [], 0
            parts.append(str(path))
            file_bytes = path.stat().st_size
            size += file_bytes
            total_bytes += file_bytes
        merged.append((parts, _new_file(folder / date.name)))
    counted, has_pending = CountedRows(grown.partition, grown.last), False
    if merged:
        tasks = min(len(merged), max(spark.sparkContext.defaultParallelism, total_bytes // FILE_BYTES))
        merging = partial(_merge_named, grown.partition, grown.last)
        for counts, pending in spark.sparkContext.parallelize(merged, tasks).map(merging).collect():
            counted.add_counts(counts)
            has_pending |= pending
    return counted.by_partition, has_pending


def _merge_named(partition: tuple[str, ...], last: str, names: tuple[list[str], str]) -> tuple[Counts, bool]:
    counted, has_pending = CountedRows(partition, last), False

    def see(rows: RecordBatch) -> None:
        nonlocal has_pending
        counted.add(rows)
        has_pending |= TXN_STATE in rows.schema.names and PENDING in rows[TXN_STATE].unique().to_pylist()

    merge(*names, see)
    return counted.by_partition, has_pending


def _new_file(folder: Path) -> str:
    return str(folder / f"part-{uuid4()}.parquet")


def compact_parquet(spark: SparkSession, root: Path) -> dict[str, int]:
    """Rewrite the small files of each date of a Parquet directory to larger ones; return by how many they are fewer.

    A reader that has no part in the publication sees the rows of a date twice, or a file vanish, while files are
    renamed and removed.

    Raises:
        TablesError: another process is writing there.
    """
    publication = Publication(root)
    with publication.writing():
        removed: list[Path] = []
        fewer = {}
        for grown in GROWING:
            small = _small_files(root / grown.name)
            if small:
                rows = read_files(spark, grown.table, *small)
                total_bytes = sum(path.stat().st_size for path in small)
                _save_dated(in_large_files(grown, rows, total_bytes), publication.staged / grown.name)
            written = list((publication.staged / grown.name).rglob("*.parquet"))
            fewer[grown.name] = len(small) - len(written)
            removed += small
        publication.publish(publication.state(), removed)
        return fewer


def _small_files(folder: Path) -> list[Path]:
    """Return the small files of dates that have several."""
    by_day: dict[Path, list[Path]] = {}
    for path in folder.glob("date=*/*.parquet"):
        if path.stat().st_size < SMALL_BYTES:
            by_day.setdefault(path.parent, []).append(path)
    return sorted(path for paths in by_day.values() if len(paths) > 1 for path in paths)


def read_marks(root: Path) -> dict[str, Marks]:
    """Return the marks of the tables of a directory; none if there are no tables, or the last write did not finish."""
    try:
        state = Publication(root).state()
    except TablesError:  # the next write finishes it, or raises this error
        state = {}
    return {grown.name: _read_marks(state.get(grown.name, [])) for grown in GROWING}


def read_origin(root: Path) -> Origin:
    """Return what the state of a Parquet directory says about its log.

    Raises:
        TablesError: the last write did not finish.
    """
    return Origin.from_json(Publication(root).state().get(ORIGIN))


def _settled(spark: SparkSession, grown: Growing, publication: Publication) -> tuple[DataFrame, int]:
    """Take the rows that wait out of a staged table; return the others, and how many wait."""
    folder = publication.staged / grown.name
    written = read_files(spark, grown.table, folder)
    if grown.table is not COMMITS or not written.where(F.col(TXN_STATE) == PENDING).head(1):
        return written, 0
    # Rare, so the log is read once, and the staged rows are read and written a second time.
    raw = publication.scratch / grown.name
    raw.parent.mkdir(parents=True, exist_ok=True)
    folder.rename(raw)
    everything = read_files(spark, grown.table, raw)
    _save(grown, _before_pending(everything), folder)
    written = read_files(spark, grown.table, folder)
    return written, everything.count() - written.count()


def _save(grown: Growing, rows: DataFrame, folder: Path) -> None:
    _save_dated(by_date(grown, rows), folder)


def _save_dated(rows: DataFrame, folder: Path) -> None:
    parquet_as_declared(rows.sparkSession)
    rows.write.option("compression", "zstd").partitionBy(DATE).parquet(spark_path(folder))


def by_date(grown: Growing, rows: DataFrame) -> DataFrame:
    """Return the rows with their date, repartitioned so that files have a good size."""
    return _dated(grown, rows).hint("rebalance", DATE)


def in_large_files(grown: Growing, rows: DataFrame, total_bytes: int) -> DataFrame:
    """Return the rows of files with that size with their date, in Spark partitions of about `FILE_BYTES` each."""
    return _dated(grown, rows).repartitionByRange(-(-total_bytes // FILE_BYTES), DATE, grown.last)


def _dated(grown: Growing, rows: DataFrame) -> DataFrame:
    """Return the rows with their date; without a time, it is in 1970."""
    return rows.withColumn(DATE, F.coalesce(F.to_date(grown.time), F.lit("1970-01-01").cast("date")))


def later(grown: Growing, source: Source, marks: Marks) -> DataFrame:
    """Return the rows that are not in the table."""
    # By the last offset: a log without records ends before its first offset, and its row is not new again.
    return rows_after(source.table(grown.name, marks), grown, marks, grown.last)


def rows_after(rows: DataFrame, grown: Growing, marks: Marks, offset: str) -> DataFrame:
    """Return the rows of which a column, an offset, is above the mark of the partition."""
    if not marks:
        return rows
    types = {column.name: column.type.value for column in grown.table.columns}
    schema = ", ".join(f"{name} {types[name]}" for name in grown.partition) + ", mark bigint"
    known = rows.sparkSession.createDataFrame([(*partition, mark) for partition, mark in marks.items()], schema)
    is_new = F.col("mark").isNull() | (F.col(offset) > F.col("mark"))
    return rows.join(F.broadcast(known), list(grown.partition), "left").where(is_new).select(*rows.columns)


def _before_pending(commits: DataFrame) -> DataFrame:
    """Return the commits of each partition before its first pending one."""
    pending = commits.where(F.col(TXN_STATE) == PENDING)
    limits = pending.groupBy("log_partition").agg(F.min("log_offset").alias("limit"))
    is_before = F.col("limit").isNull() | (F.col("log_offset") < F.col("limit"))
    return commits.join(F.broadcast(limits), "log_partition", "left").where(is_before).select(*COMMITS.names)


def marks_of(grown: Growing, rows: DataFrame) -> Counts:
    """Return the highest offset and the number of rows, by partition."""
    by_partition = rows.groupBy(*grown.partition).agg(F.max(grown.last).alias("mark"), F.count("*").alias("count"))
    return {tuple(row[name] for name in grown.partition): (row["mark"], row["count"]) for row in by_partition.collect()}


def _read_marks(listed: list[list[str | int]]) -> Marks:
    return {tuple(partition): int(mark) for *partition, mark in listed}


def check_it_is_the_same(
    source: Source, marks: Mapping[str, Marks], root: Path | str, identity: LogIdentity = NO_IDENTITY
) -> None:
    """Compare the end of the log with the marks of the tables, and its identity with theirs.

    Raises:
        TablesError: it is another log.
    """
    difference = identity.difference(source.origin.identity)
    if difference is not None:
        raise TablesError(f"{root}: {difference}: it is another log and needs another directory")
    if None in source.ends:
        raise TablesError(f"the directory of the log is not named like a partition: rename it like {OFFSETS_TOPIC}-12")
    for partition, end in source.ends.items():
        assert partition is not None
        mark = marks[LOG_BATCHES.name].get((OFFSETS_TOPIC, partition), -1)
        if end < mark:
            raise TablesError(
                f"{root}: has {OFFSETS_TOPIC}-{partition} up to offset {mark}, and this log ends at {end}: "
                "it is another log and needs another directory"
            )
    for key, mark in marks[LOG_BATCHES.name].items():
        if source.topic_ends.get((str(key[0]), int(key[1])), mark) < mark:
            raise TablesError(
                f"{root}: has {key[0]}-{key[1]} up to offset {mark}, and this log is shorter: "
                "the topic was deleted and created again, and the tables need another directory"
            )
