"""The input of jobs: a directory of logs, or of tables made from logs."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES
from kproto.logs.files import find_partitions, survey
from kproto.logs.locations import local_path
from kproto.logs.log_dirs import SEPARATOR, is_many, log_dirs
from kproto.logs.replicas import BEHIND, CUT, DIVERGED, compare, find_log_dirs, find_replicas, paths_of
from kproto.spark import tables
from kproto.spark.formats import PARQUET, atomic_format, is_tables, open_tables
from kproto.spark.input import Coverage, Input
from kproto.spark.log_input import LogInput
from kproto.spark.schemas import TABLES
from kproto.spark.store_manifest import size_in_store
from kproto.spark.words import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from kproto.spark.atomic_tables import AtomicTables
    from kproto.spark.tables import Marks

NAMES = (COMMITS.name, GROUP_METADATA.name, LOG_BATCHES.name)


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


class AtomicInput(Input):
    """A path or URI below which the command `tables` wrote in another format than Parquet."""

    def __init__(self, tables: AtomicTables, groups: Sequence[str] = ()) -> None:
        super().__init__(tables.spark, tables.root, groups)
        self._tables = tables

    def table(self, name: str, after: Marks | None = None) -> DataFrame:
        return self._tables.read(TABLES[name])

    @cached_property
    def coverage(self) -> Coverage:
        """Count what the tables have of the offsets topic.

        Raises:
            NoLog: there is nothing.
        """
        return self._from_tables(self._tables.size(), self._tables.origin())


def open_input(spark: SparkSession, path: str, groups: Sequence[str] = ()) -> Input:
    """Return the input at a path: tables if the command `tables` wrote there, else a log.

    Raises:
        NoLog: the path holds neither.
        TablesError: the last write of the tables did not finish.
    """
    if is_tables(path):
        return TablesInput(spark, path, groups)
    found = open_tables(spark, path)
    if found is not None:
        return AtomicInput(found, groups)
    find_partitions(path)
    return LogInput(spark, path, groups)


def open_inputs(
    spark: SparkSession, path: str, groups: Sequence[str] = (), *, note: Callable[[str], None]
) -> dict[str | None, Input]:
    """Return the input of each cluster at a path, by cluster id; of a path that is not many, with key None.

    Of many log.dirs, the most complete replica of each partition is read.

    Args:
        note: called with a line for each cluster whose replicas disagree.

    Raises:
        CorruptLog: the end of a replica is damaged.
        NoLog, TablesError: as `open_input`.
        OSError: a path cannot be read.
    """
    if not is_many(path):
        return {None: open_input(spark, path, groups)}
    found: dict[str | None, Input] = {}
    for cluster_id, paths in sorted(find_log_dirs(log_dirs(path)).items(), key=lambda item: item[0] or ""):
        replicas = find_replicas(paths)
        directories = paths_of(replicas)
        name = paths[0] if len(paths) == 1 else f"{paths[0]} and {plural(len(paths) - 1, 'other path')}"
        find_partitions(SEPARATOR.join(directories))
        states = Counter(one.state for of_partition in replicas for one in compare(of_partition))
        if states.keys() & {BEHIND, CUT, DIVERGED}:
            counts = ", ".join(f"{states[state]:,} {state}" for state in (BEHIND, CUT, DIVERGED) if states[state])
            note(f"{name}: of {plural(states.total(), 'replica')}, {counts}: the job replicas shows them")
        found[cluster_id] = LogInput(spark, name, groups, directories)
    return found


def input_size(path: str) -> int:
    """Return the bytes of all segments, or of all files of the tables, of a local input.

    Raises:
        NoLog: the path holds neither.
    """
    if is_many(path):
        return sum(input_size(one) for one in log_dirs(path))
    form = None if is_tables(path) else atomic_format(path)
    if form == PARQUET:
        return size_in_store(path)
    if form is not None or is_tables(path):
        return sum(_table_file_sizes(local_path(path)))
    return survey(find_partitions(path, None)).size


def _table_file_sizes(root: Path) -> list[int]:
    return [path.stat().st_size for name in NAMES for path in (root / name).rglob("*.parquet")]
