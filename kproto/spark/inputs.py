"""The input of jobs: a directory of logs, or of tables made from logs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES
from kproto.errors import NoLog
from kproto.logs.files import find_partitions, local_path, survey
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark import tables
from kproto.spark.publish import Publication
from kproto.spark.schemas import TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

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
    """Offsets between the first and the last one of each partition without a record: compaction removed them."""
    first_offset: int
    """The lowest first offset of a partition."""
    starts_late: int
    """Partitions whose first offset is not 0."""
    first_ts: datetime
    last_ts: datetime
    skipped: Mapping[str, int]
    """Records of types that no table has, by Kafka's type number."""

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

    def files(self) -> tuple[int, int]:
        """Return the number and the bytes of the files of the offsets topic."""
        raise NotImplementedError

    def skipped(self) -> Mapping[str, int]:
        """Return the number of records of each type that no table has."""
        raise NotImplementedError

    @cached_property
    def commits(self) -> DataFrame:
        return self._of_groups(self.table(COMMITS.name))

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

    @cached_property
    def coverage(self) -> Coverage:
        """Read the headers of all batches of the offsets topic.

        Raises:
            NoLog: there are none.
        """
        by_partition = (
            self.log_batches.where(F.col("topic") == OFFSETS_TOPIC)
            .groupBy("partition")
            .agg(
                F.count("*").alias("batches"),
                F.sum("bytes").alias("bytes"),
                F.sum("record_count").alias("records"),
                F.min("base_offset").alias("first"),
                F.max("last_offset").alias("last"),
                F.unix_micros(F.min("max_ts")).alias("first_us"),
                F.unix_micros(F.max("max_ts")).alias("last_us"),
            )
        )
        found = by_partition.collect()
        if not found:
            raise NoLog(f"{self.path}: the logs of {OFFSETS_TOPIC} in it are empty")
        files, size = self.files()
        records = sum(row["records"] for row in found)
        return Coverage(
            path=self.path,
            files=files,
            bytes=size,
            ends={row["partition"]: row["last"] for row in found},
            batches=sum(row["batches"] for row in found),
            records=records,
            missing=sum(row["last"] - row["first"] + 1 for row in found) - records,
            first_offset=min(row["first"] for row in found),
            starts_late=sum(row["first"] > 0 for row in found),
            first_ts=_moment(min(row["first_us"] for row in found)),
            last_ts=_moment(max(row["last_us"] for row in found)),
            skipped=self.skipped(),
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
        return reader.load(self._path)

    @property
    def last_commits(self) -> DataFrame:
        return self._of_groups(self._reader("candidates").load(self._path))

    def files(self) -> tuple[int, int]:
        found = survey(find_partitions(self.path))
        return found.files, found.size

    def skipped(self) -> Mapping[str, int]:
        rows = self._reader("coverage").load(self._path)
        kinds = rows.where(F.col("skipped_records") > 0).select(F.explode("skipped_types").alias("kind"))
        found: dict[str, int] = {}
        for (text,) in kinds.collect():
            kind, _, count = text.partition(": ")
            found[kind] = found.get(kind, 0) + int(count)
        return found


class TablesInput(Input):
    """A directory that the command `tables` wrote."""

    def __init__(self, spark: SparkSession, path: str, groups: Sequence[str] = ()) -> None:
        super().__init__(spark, path, groups)
        self._root = local_path(path)

    def table(self, name: str, after: Marks | None = None) -> DataFrame:
        return tables.read(self.spark, self._root, TABLES[name])

    def files(self) -> tuple[int, int]:
        sizes = [path.stat().st_size for name in VIEWS for path in (self._root / name).rglob("*.parquet")]
        return len(sizes), sum(sizes)

    def skipped(self) -> Mapping[str, int]:
        return {}


def open_input(spark: SparkSession, path: str, groups: Sequence[str] = ()) -> Input:
    """Return the input at a path: tables if the command `tables` wrote there, else a log.

    Raises:
        NoLog: the path holds neither.
        TablesError: the last write of the tables did not finish.
    """
    if is_tables(path):
        return TablesInput(spark, path, groups)
    find_partitions(path)
    return LogInput(spark, path, groups)


def is_tables(path: str) -> bool:
    """Return whether the command `tables` wrote there."""
    return Publication(local_path(path)).exists()


def _named(partition: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return topic and number of a partition; marks of the offsets topic have the number alone."""
    return partition if len(partition) > 1 else (OFFSETS_TOPIC, *partition)


def _moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
