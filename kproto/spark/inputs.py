"""The input of jobs: a directory of logs, or of tables made from logs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES
from kproto.logs.files import find_partitions, survey
from kproto.logs.locations import is_remote, local_path
from kproto.spark import delta, tables
from kproto.spark.input import Coverage, Input
from kproto.spark.log_input import LogInput
from kproto.spark.publish import Publication
from kproto.spark.schemas import TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

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
    if is_tables(path):
        return TablesInput(spark, path, groups)
    if delta.is_delta(path):
        if is_remote(path):
            delta.check_delta(spark, path)
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
    return [
        path.stat().st_size
        for name in (COMMITS.name, GROUP_METADATA.name, LOG_BATCHES.name)
        for path in (root / name).rglob("*.parquet")
    ]


def is_tables(path: str) -> bool:
    """Return whether the command `tables` wrote there."""
    return not is_remote(path) and Publication(local_path(path)).exists()
