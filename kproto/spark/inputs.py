"""The input of jobs: a directory of logs, or of tables made from logs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES
from kproto.errors import NoLog
from kproto.logs.files import find_partitions, local_path, survey
from kproto.logs.identity import read_identity
from kproto.logs.index import tail_offset
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark import delta, tables
from kproto.spark.publish import Publication
from kproto.spark.schemas import TABLES, spark_schema
from kproto.spark.source.pruning import Wanted, partitions_at_least, pruned
from kproto.spark.tables import Origin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, DataFrameReader, Row, SparkSession

    from kproto.logs.files import PartitionDirectory
    from kproto.spark.tables import Marks

VIEWS = {COMMITS.name: "records", GROUP_METADATA.name: "groups", LOG_BATCHES.name: "batches"}


@dataclass(frozen=True)
class Coverage:
    """Counts and times of what was read of the offsets topic."""

    path: str
    files: int
    bytes: int
    ends: Mapping[int | None, int]
    """The last offset of each partition that has any; key None: the directory is not named like a partition."""
    batches: int
    records: int
    missing: int
    """Offsets up to the last one of each partition without a record: compaction or deletion removed them."""
    first_offset: int
    """The lowest first offset of a partition."""
    starts_late: int
    """Partitions whose first offset is not 0."""
    first_ts: datetime
    last_ts: datetime
    skipped: Mapping[str, int]
    """Records of types that no table has, by Kafka's type number."""
    partitions: int
    """Partitions in the input, also empty ones."""
    of_partitions: int | None
    """The partitions that the topic has at least; None: unknown."""
    waiting: int = 0
    """Commits that tables lack because a transaction before them was open."""
    markers: int = 0
    """End markers of transactions."""

    @property
    def last_offset(self) -> int:
        """The highest last offset of a partition."""
        return max(self.ends.values())

    @property
    def missing_share(self) -> float:
        """The share of missing offsets, 0 to 1."""
        return self.missing / (self.missing + self.records) if self.missing else 0.0


class Input:
    """A directory and its three tables, restricted to some groups (empty: all)."""

    def __init__(self, spark: SparkSession, path: str, groups: Sequence[str] = ()) -> None:
        self.spark = spark
        self.path = path
        self.groups = groups

    def table(self, name: str, after: Marks | None = None) -> DataFrame:
        """Return one of the three tables; of partitions with a mark, at least the rows after that offset."""
        raise NotImplementedError

    @cached_property
    def commits(self) -> DataFrame:
        """The commits; message sets of magic 0 have no timestamps, and the time of the commit stands for them."""
        rows = self._of_groups(self.table(COMMITS.name))
        return rows.withColumn("log_ts", F.coalesce("log_ts", "commit_ts"))

    @property
    def last_commits(self) -> DataFrame:
        """Some rows of commits, with the last counted one of each key: fewer to transfer than all rows."""
        return self.commits

    @cached_property
    def group_metadata(self) -> DataFrame:
        return self._of_groups(self.table(GROUP_METADATA.name))

    @cached_property
    def log_batches(self) -> DataFrame:
        return self.table(LOG_BATCHES.name)

    @property
    def offsets_batches(self) -> DataFrame:
        """The batches of the offsets topic; those of its other partitions may be missing if there are groups."""
        return self.log_batches.where(F.col("topic") == OFFSETS_TOPIC)

    @property
    def markers(self) -> DataFrame | None:
        """Rows of `log_batches` with the end markers of the offsets topic; None: there are none."""
        return self.offsets_batches if self.coverage.markers else None

    @property
    def log_ends(self) -> DataFrame:
        """Some rows of `log_batches`, with the last one of each log."""
        return self.log_batches

    @property
    def end_ts(self) -> datetime:
        """The newest timestamp in the offsets topic, whatever the groups."""
        return self.coverage.last_ts

    @cached_property
    def coverage(self) -> Coverage:
        """Read how much of the offsets topic is there; with groups, of the partitions that can have them.

        Raises:
            NoLog: the logs are empty.
        """
        raise NotImplementedError

    @property
    def origin(self) -> Origin:
        """What tables made from this input know of its log."""
        return Origin(self.coverage.partitions, self.coverage.of_partitions)

    def _batches_by_partition(self) -> list[Row]:
        """Return the rows of `_covered` that `log_batches` gives."""
        # A batch of compressed messages of magic 0 and 1 has neither a count nor a first offset there.
        return (
            self.log_batches.where((F.col("topic") == OFFSETS_TOPIC) & (F.col("bytes") > 0))
            .groupBy("partition")
            .agg(
                F.count("*").alias("batches"),
                F.sum(F.coalesce("record_count", F.lit(1))).alias("records"),
                F.min(F.coalesce("base_offset", "last_offset")).alias("first"),
                F.max("last_offset").alias("last"),
                F.unix_micros(F.min("max_ts")).alias("first_us"),
                F.unix_micros(F.max("max_ts")).alias("last_us"),
                F.count_if("control").alias("markers"),
            )
            .collect()
        )

    def _from_tables(self, files: tuple[int, int], origin: Origin) -> Coverage:
        """Return the coverage of tables."""
        found = self._batches_by_partition()
        return self._covered(
            found,
            files,
            skipped={},
            partitions=origin.partitions or len(found),
            of_partitions=origin.of_partitions,
            waiting=origin.waiting,
        )

    def _covered(self, parts: list[Row], files: tuple[int, int], **others: Any) -> Coverage:
        """Return the coverage of partitions.

        Args:
            parts: rows with partition, first, last, batches, records, markers, and the times first_us and last_us.
        """
        if not parts:
            raise NoLog(f"{self.path}: the logs of {OFFSETS_TOPIC} in it are empty")
        ends: dict[int | None, int] = {}
        starts: dict[int | None, int] = {}
        for row in parts:
            ends[row["partition"]] = max(row["last"], ends.get(row["partition"], 0))
            starts[row["partition"]] = min(row["first"], starts.get(row["partition"], row["first"]))
        records = sum(row["records"] for row in parts)
        times = [row[name] for row in parts for name in ("first_us", "last_us") if row[name] is not None]
        if not times:  # magic 0
            commits = self.commits.agg(F.unix_micros(F.min("log_ts")), F.unix_micros(F.max("log_ts"))).collect()[0]
            times = [time for time in commits if time is not None] or [0]
        return Coverage(
            path=self.path,
            files=files[0],
            bytes=files[1],
            ends=ends,
            batches=sum(row["batches"] for row in parts),
            records=records,
            missing=sum(end + 1 for end in ends.values()) - records,
            first_offset=min(starts.values()),
            starts_late=sum(first > 0 for first in starts.values()),
            first_ts=_moment(min(times)),
            last_ts=_moment(max(times)),
            markers=sum(row["markers"] for row in parts),
            **others,
        )

    def _of_groups(self, rows: DataFrame) -> DataFrame:
        return rows.where(F.col("group_id").isin(*self.groups)) if self.groups else rows


class LogInput(Input):
    """A log.dir, the directory of one partition, or a segment."""

    def __init__(self, spark: SparkSession, path: str, groups: Sequence[str] = ()) -> None:
        super().__init__(spark, path, groups)
        self._path = str(local_path(path))  # absolute: Spark's processes may have other working directories

    def _reader(self, view: str) -> DataFrameReader:
        return self.spark.read.format("kproto").option("view", view)

    def table(self, name: str, after: Marks | None = None) -> DataFrame:
        reader = self._reader(VIEWS[name])
        if after:
            first = {"-".join(map(str, _named(partition))): mark + 1 for partition, mark in after.items()}
            reader = reader.option("startingOffsets", json.dumps(first))
        rows = reader.load(self._path)
        return rows if name != LOG_BATCHES.name else self._with_empty_ends(rows, find_partitions(self.path, None))

    def _with_empty_ends(self, batches: DataFrame, partitions: Sequence[PartitionDirectory]) -> DataFrame:
        ends = empty_ends(partitions)
        return batches.union(self.spark.createDataFrame(ends, spark_schema(LOG_BATCHES))) if ends else batches

    @property
    def last_commits(self) -> DataFrame:
        return self._of_groups(self._reader("candidates").load(self._path))

    @cached_property
    def _of_offsets(self) -> list[PartitionDirectory]:
        """The partitions of the offsets topic that can have records of the groups."""
        found = find_partitions(self.path)
        if not self.groups:
            return found
        wanted = pruned(found, Wanted(group_id=frozenset(self.groups)), count=None, of_log=False)
        return wanted if survey(wanted).size else found

    def _in_partitions(self, rows: DataFrame) -> DataFrame:
        numbers = {partition.number for partition in self._of_offsets}
        return rows if not self.groups or None in numbers else rows.where(F.col("partition").isin(*numbers))

    @property
    def offsets_batches(self) -> DataFrame:
        return self._in_partitions(super().offsets_batches)

    @cached_property
    def log_ends(self) -> DataFrame:
        partitions = find_partitions(self.path, None)
        tails = {partition.path.name: tail_offset(partition) for partition in partitions}
        first = {name: offset for name, offset in tails.items() if offset is not None}
        rows = self._reader(VIEWS[LOG_BATCHES.name]).option("startingOffsets", json.dumps(first)).load(self._path)
        return self._with_empty_ends(rows, partitions)

    @cached_property
    def end_ts(self) -> datetime:
        if not self.groups:
            return self.coverage.last_ts
        tails = self.log_ends.where(F.col("topic") == OFFSETS_TOPIC).agg(F.unix_micros(F.max("max_ts"))).collect()
        of_others = tails[0][0]
        last = self.coverage.last_ts
        return last if of_others is None else max(last, _moment(of_others))

    @cached_property
    def coverage(self) -> Coverage:
        """Decode and check all records of the offsets topic, or of the partitions that can have the groups.

        Raises:
            NoLog: the logs are empty.
        """
        rows = self._in_partitions(self._reader("coverage").load(self._path))
        parts = rows.where(F.col("first_offset").isNotNull()).select(
            "partition",
            F.col("first_offset").alias("first"),
            F.col("last_offset").alias("last"),
            "batches",
            "records",
            "markers",
            F.unix_micros("earliest_ts").alias("first_us"),
            F.unix_micros("latest_ts").alias("last_us"),
            "skipped_types",
        )
        found = parts.collect()
        skipped: dict[str, int] = {}
        for text in (text for row in found for text in row["skipped_types"]):
            kind, _, count = text.partition(": ")
            skipped[kind] = skipped.get(kind, 0) + int(count)
        partitions = find_partitions(self.path)
        counted = survey(self._of_offsets)
        return self._covered(
            found,
            (counted.files, counted.size),
            skipped=skipped,
            partitions=len(partitions),
            of_partitions=partitions_at_least(partitions),
        )

    @property
    def origin(self) -> Origin:
        """What tables made from this input know of its log."""
        return replace(super().origin, identity=read_identity(find_partitions(self.path, None)))


class TablesInput(Input):
    """A directory that the command `tables` wrote."""

    def __init__(self, spark: SparkSession, path: str, groups: Sequence[str] = ()) -> None:
        super().__init__(spark, path, groups)
        self._root = local_path(path)

    def table(self, name: str, after: Marks | None = None) -> DataFrame:
        return tables.read(self.spark, self._root, TABLES[name])

    @cached_property
    def coverage(self) -> Coverage:
        """Count what the tables have of the offsets topic.

        Raises:
            NoLog: there is nothing.
        """
        sizes = _table_file_sizes(self._root)
        return self._from_tables((len(sizes), sum(sizes)), tables.read_origin(self._root))


class DeltaInput(Input):
    """A path or URI below which the command `tables --format delta` wrote."""

    def table(self, name: str, after: Marks | None = None) -> DataFrame:
        return delta.read_delta(self.spark, self.path, TABLES[name])

    @cached_property
    def coverage(self) -> Coverage:
        """Count what the tables have of the offsets topic.

        Raises:
            NoLog: there is nothing.
        """
        return self._from_tables(delta.table_size(self.spark, self.path), delta.read_origin(self.spark, self.path))


def open_input(spark: SparkSession, path: str, groups: Sequence[str] = ()) -> Input:
    """Return the input at a path: tables if the command `tables` wrote there, else a log.

    Raises:
        NoLog: the path holds neither.
        TablesError: the last write of the tables did not finish.
    """
    if delta.is_remote(path):
        delta.check_delta(spark, path)
        return DeltaInput(spark, path, groups)
    if is_tables(path):
        return TablesInput(spark, path, groups)
    if delta.is_delta(path):
        return DeltaInput(spark, path, groups)
    find_partitions(path)
    return LogInput(spark, path, groups)


def input_size(path: str) -> int:
    """Return the bytes of all segments, or of all files of the tables, of a local input.

    Raises:
        NoLog: the path holds neither.
    """
    if is_tables(path) or delta.is_delta(path):
        return sum(_table_file_sizes(local_path(path)))
    return survey(find_partitions(path, None)).size


def _table_file_sizes(root: Path) -> list[int]:
    return [path.stat().st_size for name in VIEWS for path in (root / name).rglob("*.parquet")]


def is_tables(path: str) -> bool:
    """Return whether the command `tables` wrote there."""
    return Publication(local_path(path)).exists()


def empty_ends(partitions: Sequence[PartitionDirectory]) -> list[tuple[Any, ...]]:
    """Return a row of `LOG_BATCHES` without bytes for each log whose newest segment is empty.

    The name of that segment is the end of the log, which no batch may show: there are none yet, or none left.
    """
    rows = []
    for partition in partitions:
        sizes = partition.sizes()
        if sizes and sizes[-1][1] == 0:
            end = sizes[-1][0].base_offset
            fixed = (None, 0, "none", 0, None, False, None, False)
            rows.append((partition.topic, partition.number, end, end - 1, *fixed))
    return rows


def _named(partition: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return topic and number of a partition; marks of the offsets topic have the number alone."""
    return partition if len(partition) > 1 else (OFFSETS_TOPIC, *partition)


def _moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
