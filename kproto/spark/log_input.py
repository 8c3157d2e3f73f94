"""The log as input of jobs: each table read by itself, or all from one scan."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES, Table
from kproto.errors import NoLog
from kproto.logs.files import find_partitions, survey, with_listings
from kproto.logs.identity import read_identity
from kproto.logs.index import tail_offset
from kproto.logs.locations import Location, location
from kproto.logs.log_dirs import SEPARATOR
from kproto.logs.ranges import log_end
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kproto.records.segment_files import CLEANED, offsets_in_checkpoint
from kproto.spark.engine import F, is_embedded
from kproto.spark.input import LAST_COMMITS, LOG_ENDS, MARKERS, OFFSETS_BATCHES, OWN_VIEWS, Coverage, Input, timed
from kproto.spark.schemas import COVERAGE, TABLES, ddl, read_files
from kproto.spark.scratch import directory_for_rows
from kproto.spark.session import is_local, scratch_directory
from kproto.spark.source.kept import Writer, combine_small
from kproto.spark.source.options import SCAN
from kproto.spark.source.pruning import Wanted, partitions_at_least, pruned
from kproto.spark.source.scan import ROW_OF, Scan
from kproto.spark.tables import GROWING
from kproto.spark.times import moment_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from kproto.logs.files import PartitionDirectory
    from kproto.spark.tables import Marks, Origin

VIEWS = {COMMITS.name: "records", GROUP_METADATA.name: "groups", LOG_BATCHES.name: "batches"}
_TABLES_OF = {COMMITS.name: (LAST_COMMITS,), GROUP_METADATA.name: (), LOG_BATCHES.name: (MARKERS, OFFSETS_BATCHES)}

_PART = {"first": "first_offset", "last": "last_offset"} | {
    name: name for name in ("partition", "batches", "records", "markers", "skipped_types")
}
_TIMES_OF_PART = {"first_us": "earliest_ts", "last_us": "latest_ts"}
"""The columns of `COVERAGE` that `LogInput.coverage` reads, by their names in `Input._covered`."""


class LogInput(Input):
    """A log.dir, the directory of one partition, a segment, or directories of partitions of several brokers."""

    def __init__(
        self, spark: SparkSession, path: str, groups: Sequence[str] = (), directories: Sequence[str] = ()
    ) -> None:
        """Open a log.

        Args:
            path: the log; with ``directories``, the name of the input in messages.
            directories: the partitions, one replica of each; empty: those at the path.
        """
        super().__init__(spark, path, groups)
        self._directories = directories
        # absolute: Spark's processes may have other working directories
        self._path = SEPARATOR.join(directories) if directories else str(location(path))
        self._found: dict[tuple[str, ...] | None, list[PartitionDirectory]] = {}

    def _partitions(self, topics: tuple[str, ...] | None = (OFFSETS_TOPIC,)) -> list[PartitionDirectory]:
        """Return the partitions of some topics (None: of all), which are looked for once; it raises what
        `find_partitions` does.
        """
        if topics not in self._found:
            self._found[topics] = with_listings(find_partitions(self._path, topics))
        return self._found[topics]

    def _reader(self, view: str) -> DataFrameReader:
        return self.spark.read.format("kproto").option("view", view)

    def table(self, name: str, after: Marks | None = None) -> DataFrame:
        reader = self._reader(VIEWS[name])
        if after:
            first = {name: mark + 1 for name, mark in _by_directory(after).items()}
            reader = reader.option("startingOffsets", json.dumps(first))
        rows = reader.load(self._path)
        return rows if name != LOG_BATCHES.name else self._with_empty_ends(rows, self._partitions(None))

    def _with_empty_ends(self, batches: DataFrame, partitions: Sequence[PartitionDirectory]) -> DataFrame:
        ends = empty_ends(partitions)
        return batches.union(self.spark.createDataFrame(ends, ddl(LOG_BATCHES))) if ends else batches

    @property
    def last_commits(self) -> DataFrame:
        return timed(self._of_groups(self._reader("candidates").load(self._path)))

    @cached_property
    def _of_offsets(self) -> list[PartitionDirectory]:
        """The partitions of the offsets topic that can have records of the groups."""
        found = self._partitions()
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
        partitions = self._partitions(None)
        first = json.dumps(_tails(partitions))
        rows = self._reader(VIEWS[LOG_BATCHES.name]).option("startingOffsets", first).load(self._path)
        return self._with_empty_ends(rows, partitions)

    @cached_property
    def end_ts(self) -> datetime:
        if not self.groups:
            return self.coverage.last_ts
        tails = self.log_ends.where(F.col("topic") == OFFSETS_TOPIC).agg(F.unix_micros(F.max("max_ts"))).collect()
        of_others = tails[0][0]
        last = self.coverage.last_ts
        return last if of_others is None else max(last, moment_of(of_others))

    @property
    def _coverage_rows(self) -> DataFrame:
        return self._in_partitions(self._reader("coverage").load(self._path))

    @cached_property
    def coverage(self) -> Coverage:
        """Decode and check all records of the offsets topic, or of the partitions that can have the groups.

        Raises:
            NoLog: the logs are empty.
        """
        found = self._parts_read()
        skipped: dict[str, int] = {}
        for text in (text for row in found for text in row["skipped_types"]):
            kind, _, count = text.partition(": ")
            skipped[kind] = skipped.get(kind, 0) + int(count)
        partitions = self._partitions()
        counted = survey(self._of_offsets)
        return self._covered(
            found,
            (counted.files, counted.size),
            skipped=skipped,
            partitions=len(partitions),
            of_partitions=partitions_at_least(partitions),
        )

    def _parts_read(self) -> list[Any]:
        """Return the rows of `_covered`, with `skipped_types`: one for each part of a log that has batches."""
        named = [F.col(column).alias(name) for name, column in _PART.items()]
        times = [F.unix_micros(column).alias(name) for name, column in _TIMES_OF_PART.items()]
        return self._coverage_rows.where(F.col("first_offset").isNotNull()).select(*named, *times).collect()

    @property
    def assignment_records(self) -> DataFrame:
        return self._of_groups(self._reader("assignments").load(self._path))

    @property
    def topic_names(self) -> DataFrame:
        names = read_identity(self._partitions(None)).topic_ids
        rows = [(topic_id, topic) for topic, topic_id in names.items()]
        return self.spark.createDataFrame(rows, "topic_id string, name string")

    @property
    def transaction_states(self) -> DataFrame:
        return self._of_other_topic("transactions", TRANSACTION_TOPIC)

    @property
    def share_states(self) -> DataFrame:
        return self._of_groups(self._of_other_topic("share_states", SHARE_STATE_TOPIC))

    def _of_other_topic(self, view: str, topic: str) -> DataFrame:
        for partition in self._partitions((topic,)):
            if partition.topic != topic:  # the path is that of one partition
                raise NoLog(f"{self.path}: a partition of {partition.topic}: give a log.dir with {topic}")
        return self._reader(view).option("allowEmpty", "true").load(self._path)

    @property
    def cleaned(self) -> DataFrame | None:
        found: dict[Location, dict[tuple[str, int], int]] = {}
        rows = []
        for partition in self._partitions(None):
            log_dir = partition.path.parent
            if log_dir not in found:
                try:
                    text = (log_dir / CLEANED).read_text(encoding="utf-8")
                except FileNotFoundError:
                    return None
                found[log_dir] = offsets_in_checkpoint(text, CLEANED)
            end = None if partition.number is None else found[log_dir].get((partition.topic, partition.number))
            if end is not None:
                rows.append((partition.topic, partition.number, end))
        return self.spark.createDataFrame(rows, "topic string, partition int, cleaned_to bigint")

    @property
    def origin(self) -> Origin:
        """What tables made from this input know of its log."""
        return replace(super().origin, identity=read_identity(self._partitions(None)))

    @property
    def topic_ends(self) -> dict[tuple[str, int], int]:
        """The last offset of each partition of all topics, from the end of its newest segment."""
        named = ((partition.topic, partition.number, partition) for partition in self._partitions(None))
        return {(topic, number): log_end(partition) - 1 for topic, number, partition in named if number is not None}

    @contextmanager
    def read_once(self, *names: str, after: Mapping[str, Marks] | None = None) -> Iterator[Input]:
        """Yield an input whose rows are read once.

        On one machine, tasks write them to files below a temporary directory. On a cluster Spark keeps them, in its
        storage memory or on the executors' disks.
        """
        if not is_embedded() and is_local(self.spark):
            with directory_for_rows(scratch_directory(self.spark)) as folder:
                yield FiledInput(self, names, after or {}, folder)
            return
        shared = ScannedInput(self, names, after or {})
        try:
            yield shared
        finally:
            shared.rows.unpersist()

    def to_files(self, folder: Path, after: Mapping[str, Marks]) -> Input:
        """Write the rows of the three tables after the marks to files below a directory, by table and date.

        On a cluster, all machines have to mount the directory.
        """
        return FiledInput(self, tuple(VIEWS), after, folder, by_date=True)


class ScannedInput(LogInput):
    """A log of which jobs share one scan (`kproto.spark.source.scan`). It lacks the tables that were not asked for."""

    def __init__(self, log: LogInput, names: Sequence[str], after: Mapping[str, Marks]) -> None:
        super().__init__(log.spark, log.path, log.groups, log._directories)
        self._found = log._found
        self._all_topics = LOG_BATCHES.name in names
        decoded = self._of_offsets
        numbers = [partition.number for partition in decoded if partition.number is not None]
        wanted = [name for name, others in _TABLES_OF.items() if {name, *others} & {*names}]
        self._scan = Scan(
            after={name: _by_directory(after.get(name, {})) for name in wanted},
            last_commits=COMMITS.name not in names,
            markers_only=not {LOG_BATCHES.name, OFFSETS_BATCHES} & {*names},
            groups=tuple(self.groups),
            partitions=tuple(numbers) if self.groups and len(numbers) == len(decoded) else None,
            headers=self._all_topics or LOG_ENDS in names,
            without=tuple(topic for name, topic in OWN_VIEWS.items() if name in names),
        )
        self._run()

    def _run(self) -> None:
        self.rows: DataFrame = self._read().persist()

    def _read(self) -> DataFrame:
        reader = self._reader(SCAN).option("scan", self._scan.to_json())
        if self._scan.headers:
            reader = reader.option("topic", "*")
            if not self._all_topics:  # the others are read for their ends
                read = (one for one in self._partitions(None) if self._scan.reads(one))
                others = [one for one in read if not self._scan.decodes(one)]
                reader = reader.option("startingOffsets", json.dumps(_tails(others)))
        return reader.load(self._path)

    def _rows_of(self, table: Table) -> DataFrame:
        rows = self.rows.where(F.col(ROW_OF) == table.name)
        return rows.select(*table.names) if table is COMMITS else rows.select(f"{table.name}.*")

    def table(self, name: str, after: Marks | None = None) -> DataFrame:
        rows = self._rows_of(TABLES[name])
        if name != LOG_BATCHES.name:
            return rows
        topics = None if self._all_topics else (OFFSETS_TOPIC,)
        return self._with_empty_ends(rows, self._partitions(topics))

    @property
    def last_commits(self) -> DataFrame:
        return self.commits

    @property
    def _all_commits(self) -> DataFrame:
        return timed(self._of_groups(super().table(COMMITS.name)))

    def kept(self, rows: DataFrame) -> DataFrame:
        return rows

    @property
    def _coverage_rows(self) -> DataFrame:
        return self._rows_of(COVERAGE)

    @cached_property
    def log_ends(self) -> DataFrame:
        if not self._scan.headers:
            return super().log_ends
        if self._all_topics:
            return self.log_batches
        ends = self._coverage_rows.select("topic", "partition", "last_offset", F.col("latest_ts").alias("max_ts"))
        rows = self._rows_of(LOG_BATCHES).unionByName(ends, allowMissingColumns=True)
        return self._with_empty_ends(rows.select(*LOG_BATCHES.names), self._partitions(None))


class FiledInput(ScannedInput):
    """A log of which a scan has written the rows to files (`kproto.spark.source.kept`)."""

    def __init__(
        self, log: LogInput, names: Sequence[str], after: Mapping[str, Marks], folder: Path, *, by_date: bool = False
    ) -> None:
        """Read the log.

        Args:
            by_date: whether the files are those of tables: by date, and with rows for logs without batches.
        """
        self._folder = folder
        self._days = {grown.name: grown.time for grown in GROWING} if by_date else {}
        super().__init__(log, names, after)
        if by_date:
            self._write_empty_ends(after.get(LOG_BATCHES.name, {}))

    def _run(self) -> None:
        self._scan = replace(self._scan, folder=str(self._folder), days=self._days)
        self._counted: pa.Table = self._read().toArrow()
        if not self._days:
            for name in self._scan.after:
                combine_small(self._folder / name)

    def _parts_read(self) -> list[Any]:
        """Return what a query of Spark over these rows would, without the query: there are few."""
        parts = self._counted.filter(self._counted["first_offset"].is_valid())
        columns = {name: parts[column] for name, column in _PART.items()}
        columns |= {name: parts[column].cast("int64") for name, column in _TIMES_OF_PART.items()}
        return list(pa.table(columns).to_pylist())

    def _write_empty_ends(self, marks: Marks) -> None:
        names = LOG_BATCHES.names
        rows = [dict(zip(names, row, strict=True)) for row in empty_ends(self._partitions(None))]
        new = [row for row in rows if row["last_offset"] > marks.get((row["topic"], row["partition"]), -2)]
        if new:
            writer = Writer(LOG_BATCHES, self._folder, "without-batches", day_of=self._days[LOG_BATCHES.name])
            writer.add(pa.RecordBatch.from_pylist(new, schema=LOG_BATCHES.arrow()))
            writer.close()

    def _with_empty_ends(self, batches: DataFrame, partitions: Sequence[PartitionDirectory]) -> DataFrame:
        return batches if self._days else super()._with_empty_ends(batches, partitions)

    def _rows_of(self, table: Table) -> DataFrame:
        if table is COVERAGE:
            return self.spark.createDataFrame(self._counted)
        files = self._folder / table.name
        return read_files(self.spark, table, files) if files.exists() else self.spark.createDataFrame([], ddl(table))


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


def _tails(partitions: Sequence[PartitionDirectory]) -> dict[str, int]:
    """Return by directory an offset from which on the end of its log is found."""
    tails = {partition.path.name: tail_offset(partition) for partition in partitions}
    return {name: offset for name, offset in tails.items() if offset is not None}


def _by_directory(marks: Marks) -> dict[str, int]:
    return {"-".join(map(str, _named(partition))): mark for partition, mark in marks.items()}


def _named(partition: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return topic and number of a partition; marks of the offsets topic have the number alone."""
    return partition if len(partition) > 1 else (OFFSETS_TOPIC, *partition)
