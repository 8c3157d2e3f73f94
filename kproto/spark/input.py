"""What all inputs of jobs have in common: three tables, and how much of the offsets topic they cover."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES
from kproto.errors import NoLog
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kproto.spark.engine import F
from kproto.spark.jobs.common import batches_of_offsets_topic
from kproto.spark.tables import Origin
from kproto.spark.times import moment_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from kproto.spark.tables import Marks

LAST_COMMITS, MARKERS, OFFSETS_BATCHES, LOG_ENDS = "last_commits", "markers", "offsets_batches", "log_ends"
"""Names of properties of `Input` that need a part of a table only."""
OWN_VIEWS = {"transaction_states": TRANSACTION_TOPIC, "share_states": SHARE_STATE_TOPIC}
"""The names of properties of `Input` that read a topic of their own."""


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
    groups: int = 0
    """Groups to which the rows are restricted; 0: all."""

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
        return timed(self._of_groups(self.table(COMMITS.name)))

    @contextmanager
    def read_once(self, *names: str, after: Mapping[str, Marks] | None = None) -> Iterator[Input]:
        """Yield an input for jobs that need these tables and the coverage; of a log, it reads each byte once.

        Args:
            names: the names of the properties that are read: commits or last_commits, group_metadata, log_batches or
                offsets_batches or markers, and log_ends; with the name of a property of `OWN_VIEWS`, log_ends has no
                rows of its topic.
            after: as in `table`, by table.
        """
        yield self

    def kept(self, rows: DataFrame) -> DataFrame:
        """Return rows of a table that several jobs read, kept by Spark."""
        return rows.persist()

    @property
    def _all_commits(self) -> DataFrame:
        return self.commits

    @property
    def last_commits(self) -> DataFrame:
        """Some rows of commits, with the last counted and the last pending one of each key."""
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
    def assignment_records(self) -> DataFrame:
        """The partitions of members, by record.

        Raises:
            NoLog: they are not in the input.
        """
        raise NoLog(f"{self.path}: tables have no assignments: give a log")

    @property
    def topic_names(self) -> DataFrame:
        """The names of topics, by `topic_id`, as far as the input has them."""
        return self.spark.createDataFrame([], "topic_id string, name string")

    @property
    def topics_by_id(self) -> DataFrame:
        """The topics, by `topic_id` of 16 bytes, as far as the input has their names."""
        rows = [(urlsafe_b64decode(f"{row['topic_id']}=="), row["name"]) for row in self.topic_names.collect()]
        return self.spark.createDataFrame(rows, "topic_id binary, topic string")

    @property
    def transaction_states(self) -> DataFrame:
        """The records of `__transaction_state`.

        Raises:
            NoLog: they are not in the input.
        """
        raise NoLog(f"{self.path}: tables have no records of {TRANSACTION_TOPIC}: give a log")

    @property
    def share_states(self) -> DataFrame:
        """The records of `__share_group_state`.

        Raises:
            NoLog: they are not in the input.
        """
        raise NoLog(f"{self.path}: tables have no records of {SHARE_STATE_TOPIC}: give a log")

    @property
    def cleaned(self) -> DataFrame | None:
        """Rows with topic, partition and `cleaned_to`, the offset up to which the cleaner has compacted it; None:
        unknown."""
        return None

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
            batches_of_offsets_topic(self.log_batches)
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
            commits = self._all_commits.agg(F.unix_micros(F.min("log_ts")), F.unix_micros(F.max("log_ts"))).collect()[0]
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
            first_ts=moment_of(min(times)),
            last_ts=moment_of(max(times)),
            markers=sum(row["markers"] for row in parts),
            groups=len(self.groups),
            **others,
        )

    def _of_groups(self, rows: DataFrame) -> DataFrame:
        return rows.where(F.col("group_id").isin(*self.groups)) if self.groups else rows


def timed(commits: DataFrame) -> DataFrame:
    """Return commits that all have a `log_ts`: message sets of magic 0 have no timestamps."""
    return commits.withColumn("log_ts", F.coalesce("log_ts", "commit_ts"))
