"""The log as tables that grow: Parquet (zstd) by date, or Delta; what is in them already is not written again.

Theory of operation. A record has its place in the log for ever: partition and offset. So the highest offset of each
partition in a table tells what is new. With Parquet it is kept beside the files, in step with them (`publish`); Delta's
own log makes a write atomic, and there the table itself is asked.

What is in a transaction may still become committed or aborted: commits from the first pending one of a partition on
wait for a run that finds its end, as they do for a consumer that reads committed records.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES, Table
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark.output import parquet_as_declared
from kproto.spark.publish import Publication, TablesError
from kproto.spark.schemas import select_columns, spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

Marks = dict[tuple[str | int, ...], int]
"""The highest offset that is in a table, by partition."""


@dataclass(frozen=True)
class Growing:
    """A table that is written incrementally: which columns place a row in the log."""

    table: Table
    partition: tuple[str, ...]
    first: str
    last: str
    time: str
    """Whose day, in UTC, the row is filed under."""

    @property
    def name(self) -> str:
        return self.table.name


GROWING = (
    Growing(COMMITS, ("log_partition",), "log_offset", "log_offset", "log_ts"),
    Growing(GROUP_METADATA, ("log_partition",), "log_offset", "log_offset", "log_ts"),
    Growing(LOG_BATCHES, ("topic", "partition"), "base_offset", "last_offset", "max_ts"),
)


@dataclass(frozen=True)
class Source:
    """The log that is written to tables."""

    table: Callable[[str, Marks], DataFrame]
    """One of the three tables by name: of partitions with a mark, at least what comes after that."""
    ends: Mapping[int | None, int]
    """The last offset of each partition of the offsets topic."""


@dataclass(frozen=True)
class Added:
    """What a run has added to one table."""

    rows: int
    held_back: int
    """Rows that wait for the end of a transaction."""


def read(spark: SparkSession, root: Path, table: Table) -> DataFrame:
    """Return a table of a directory of Parquet.

    Raises:
        TablesError: there are no tables in it, or they are not whole.
    """
    if not Publication(root).state():
        raise TablesError(f"{root}: no tables of kproto are in it")
    place = root / table.name
    return (
        select_columns(table, _parquet(spark, table, place))
        if place.exists()
        else spark.createDataFrame([], spark_schema(table))
    )


def write_parquet(spark: SparkSession, source: Source, root: Path) -> dict[str, Added]:
    """Add what is new in a log to the tables of a directory; return what that was, by table.

    Raises:
        TablesError: another one is writing there, or the log ends before the tables do, so it is another log.
    """
    publication = Publication(root)
    with publication.writing():
        state = publication.state()
        marks = {grown.name: _read_marks(state.get(grown.name, [])) for grown in GROWING}
        _check_it_is_the_same(source, marks, root)
        added = {}
        for grown in GROWING:
            rows = _later(spark, grown, source, marks[grown.name])
            written, held_back = _stage(spark, grown, rows, publication)
            new = _marks(grown, written)
            marks[grown.name] |= {partition: mark for partition, (mark, _) in new.items()}
            added[grown.name] = Added(sum(count for _, count in new.values()), held_back)
        publication.publish({name: [[*key, mark] for key, mark in sorted(of.items())] for name, of in marks.items()})
        return added


def write_delta(spark: SparkSession, source: Source, root: str) -> dict[str, Added]:
    """The same, to Delta tables below a path or URI; each table is atomic by itself."""
    old = {grown.name: _delta_marks(spark, grown, f"{root}/{grown.name}") for grown in GROWING}
    _check_it_is_the_same(source, old, root)
    added = {}
    for grown in GROWING:
        rows = _later(spark, grown, source, old[grown.name])
        kept = _before_pending(rows) if grown.table is COMMITS else rows
        # What is counted is what was seen, not what was written: the log may be that of a living broker.
        total, count = rows.count(), kept.count()
        if count or not old[grown.name]:
            _by_date(grown, kept).write.format("delta").mode("append").partitionBy("date").save(f"{root}/{grown.name}")
        added[grown.name] = Added(count, total - count)
    return added


def _delta_marks(spark: SparkSession, grown: Growing, place: str) -> Marks:
    java = spark.sparkContext._jvm
    assert java is not None, "a session has a Java"
    if not java.io.delta.tables.DeltaTable.isDeltaTable(place):
        return {}
    found = _marks(grown, spark.read.format("delta").load(place))
    return {partition: mark for partition, (mark, _) in found.items()}


def _stage(spark: SparkSession, grown: Growing, rows: DataFrame, publication: Publication) -> tuple[DataFrame, int]:
    """Write rows to where they are published from; return them as they are there, and how many were held back."""
    place = publication.staged / grown.name
    _save(grown, rows, place)
    written = _parquet(spark, grown.table, place)
    if grown.table is not COMMITS or not written.where(F.col("txn_state") == "pending").head(1):
        return written, 0
    # Seldom: so the log is read once, and what was made of it a second time.
    raw = publication.scratch / grown.name
    raw.parent.mkdir(parents=True, exist_ok=True)
    place.rename(raw)
    everything = _parquet(spark, grown.table, raw)
    _save(grown, _before_pending(everything), place)
    written = _parquet(spark, grown.table, place)
    return written, everything.count() - written.count()


def _save(grown: Growing, rows: DataFrame, place: Path) -> None:
    parquet_as_declared(rows.sparkSession)
    writer = _by_date(grown, rows).write.option("compression", "zstd").partitionBy("date")
    writer.parquet(place.absolute().as_uri())


def _by_date(grown: Growing, rows: DataFrame) -> DataFrame:
    """Return the rows with their date, together as far as it makes files of a good size."""
    return rows.withColumn("date", F.to_date(grown.time)).hint("rebalance", "date")


def _parquet(spark: SparkSession, table: Table, place: Path) -> DataFrame:
    return spark.read.schema(spark_schema(table)).parquet(place.absolute().as_uri())


def _later(spark: SparkSession, grown: Growing, source: Source, marks: Marks) -> DataFrame:
    """Return the rows that are not in a table yet."""
    rows = source.table(grown.name, marks)
    if not marks:
        return rows
    types = {column.name: column.type.value for column in grown.table.columns}
    schema = ", ".join(f"{name} {types[name]}" for name in grown.partition) + ", mark bigint"
    known = spark.createDataFrame([(*partition, mark) for partition, mark in marks.items()], schema)
    is_new = F.col("mark").isNull() | (F.col(grown.first) > F.col("mark"))
    return rows.join(F.broadcast(known), list(grown.partition), "left").where(is_new).select(*grown.table.names)


def _before_pending(commits: DataFrame) -> DataFrame:
    """Return the commits of each partition up to, and without, the first that is in a transaction without an end."""
    pending = commits.where(F.col("txn_state") == "pending")
    limits = pending.groupBy("log_partition").agg(F.min("log_offset").alias("limit"))
    is_before = F.col("limit").isNull() | (F.col("log_offset") < F.col("limit"))
    return commits.join(F.broadcast(limits), "log_partition", "left").where(is_before).select(*COMMITS.names)


def _marks(grown: Growing, rows: DataFrame) -> dict[tuple[str | int, ...], tuple[int, int]]:
    """Return the highest offset and the number of rows, by partition."""
    by_partition = rows.groupBy(*grown.partition).agg(F.max(grown.last).alias("mark"), F.count("*").alias("count"))
    return {tuple(row[name] for name in grown.partition): (row["mark"], row["count"]) for row in by_partition.collect()}


def _read_marks(listed: list[list[str | int]]) -> Marks:
    return {tuple(partition): int(mark) for *partition, mark in listed}


def _check_it_is_the_same(source: Source, marks: Mapping[str, Marks], root: Path | str) -> None:
    """Compare where the log ends with what the tables have of it."""
    if None in source.ends:
        raise TablesError(f"the log's directory is not named as its partition is: name it like {OFFSETS_TOPIC}-12")
    for partition, end in source.ends.items():
        assert partition is not None
        mark = marks[LOG_BATCHES.name].get((OFFSETS_TOPIC, partition), -1)
        if end < mark:
            raise TablesError(
                f"{root}: has {OFFSETS_TOPIC}-{partition} up to offset {mark}, and this log ends at {end}: "
                "it is another log, give it a directory of its own"
            )
