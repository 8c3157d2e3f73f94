"""Derived tables have the results of the jobs over the whole log, after any number of runs, also runs that died.

`test_readme` has all of them.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from kproto.spark import derived, tables
from kproto.spark.arguments import parse
from kproto.spark.derived import DERIVED, derive_parquet, file_of
from kproto.spark.engine import EMBEDDED
from kproto.spark.input import Coverage, Input
from kproto.spark.schemas import RATES
from kproto.spark.tables import Marks
from tests.spark.derived_tables import assert_derived
from tests.spark.engines import session_of
from tests.spark.rows import Log, Row, at, group
from tests.spark.test_publish import Died, Steps
from tests.spark.test_tables import Frames, frames, settled, source

OPTIONS = parse(
    ["tables", "x", "-o", "y", "--derived", "--retention-minutes", "600", "--minutes", "5", "--moments", "2"]
)
FEW = ("hot-partitions", "rates")
"""The jobs whose tables are computed, in the order of their tables."""
BEFORE_A_RENAME = 3
"""Steps that write the intent. Each table has two more, the second of which is its rename."""


class RowInput(Input):
    """An input of given rows."""

    def __init__(self, spark: SparkSession, of_log: Frames) -> None:
        super().__init__(spark, "rows")
        self._frames = of_log

    def table(self, name: str, after: Marks | None = None) -> DataFrame:
        return self._frames[name]

    @cached_property
    def coverage(self) -> Coverage:
        return self._covered(self._batches_by_partition(), (1, 1), skipped={}, partitions=1, of_partitions=1)


class Rows(NamedTuple):
    """The rows of a log."""

    commits: list[Row]
    groups: list[Row]
    batches: list[Row]

    def frames(self, session: SparkSession) -> Frames:
        return frames(session, self.commits, self.groups, self.batches)


def assert_results(log: Rows, root: Path, request: pytest.FixtureRequest) -> None:
    with session_of(EMBEDDED, request) as embedded:
        assert_derived(RowInput(embedded, log.frames(embedded)), OPTIONS, root)


def test_each_table_has_the_result_of_its_job_after_every_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    root = tmp_path / "a b=ä%20[c]"
    made = Log(spark)
    commits = [settled(row) for row in made.commits]
    groups = [group(1000 + number, "orders", number, number % 2, seconds=number * 4_000) for number in range(4)]
    half = Rows(commits[:250], groups[:2], [row for row in made.batches if row["max_ts"] < at(9_000)])
    whole = Rows(commits, groups, made.batches)
    tables.write_parquet(spark, source(half.frames(spark)), root)
    monkeypatch.setattr(derived, "DERIVED", {job: DERIVED[job] for job in FEW})
    first = derive_parquet(spark, root, OPTIONS)
    assert all(first.values())
    assert derive_parquet(spark, root, OPTIONS) == first
    assert_results(half, root, request)
    rates = file_of(root, RATES)
    before = rates.read_bytes()
    assert pq.ParquetFile(rates).metadata.row_group(0).column(0).compression == "ZSTD"

    # The next run dies after it replaced the tables before this one, by name; the run after it finishes.
    tables.write_parquet(spark, source(whole.frames(spark)), root)
    names = sorted(table.name for table in derived.DERIVED.values())
    steps = Steps(monkeypatch)
    steps.die_at(BEFORE_A_RENAME + 2 * names.index(RATES.name) + 1)
    with pytest.raises(Died):
        derive_parquet(spark, root, OPTIONS)
    assert rates.read_bytes() == before
    steps.die_at(-1)
    tables.write_parquet(spark, source(whole.frames(spark)), root)
    assert rates.read_bytes() != before
    assert_results(whole, root, request)
