"""Write Delta tables of a growing log: ``LOG_DIR ROOT``. Print the rows added by each step, and the tables, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.offsets_log import append_commits
from kproto.arrow.schemas import COMMITS, LATEST, LOG_BATCHES
from kproto.spark import derived, jobs, session
from kproto.spark.arguments import parse
from kproto.spark.delta import write_delta
from kproto.spark.inputs import open_input
from kproto.spark.log_input import LogInput
from kproto.spark.publish import TablesError
from kproto.spark.schemas import select_columns
from kproto.spark.start import DELTA_CONFIG
from kproto.spark.tables import Marks, Source
from tests.spark.settings import LOCAL

SETTINGS = LOCAL | {"spark.databricks.delta.snapshotPartitions": "1"}  # the default of 50 takes long


class Died(Exception):
    """A run dies halfway."""


def die() -> None:
    raise Died


def run(
    spark: SparkSession, log_dir: str, root: str, *, at: str | None = None, act: Callable[[], object] = die
) -> dict[str, int]:
    """Append new rows; do something before writing the table ``at``."""
    log = LogInput(spark, log_dir)

    def table(name: str, marks: Marks) -> DataFrame:
        if name == at:
            act()
        return log.table(name, marks)

    source = Source(table, log.coverage.ends, log.origin)
    return {name: added.rows for name, added in write_delta(spark, source, root).items()}


def overlapping(spark: SparkSession, log_dir: str, root: str) -> list[Any]:
    """Append new rows while another run, that began later does it, too; return its rows, and the error of the first."""
    other: list[Any] = []
    try:
        run(spark, log_dir, root, at=COMMITS.name, act=lambda: other.append(run(spark, log_dir, root)))
    except TablesError as error:
        other.append(str(error).partition(": ")[2])
    return other


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.toArrow().to_pylist()))


def results(spark: SparkSession, log_dir: str, root: str) -> dict[str, Any]:
    """Return for each table its row count, whether its rows are the log's, and its number of days."""
    found = {}
    for kind in (COMMITS, LOG_BATCHES):
        written = spark.read.format("delta").load(f"{root}/{kind.name}")
        of_log = LogInput(spark, log_dir).table(kind.name)
        empty = 0
        if kind is LOG_BATCHES:  # logs that were empty at first have a row without bytes
            empty = written.where("bytes = 0").count()
            written, of_log = written.where("bytes > 0"), of_log.where("bytes > 0")
        found_rows = rows(select_columns(kind, written))
        days = len(set(written.select("date").toArrow()["date"].to_pylist()))
        same = found_rows == rows(of_log)
        found[kind.name] = {"rows": len(found_rows) + empty, "same": same, "days": days}
    return found


def read_by_jobs(spark: SparkSession, log_dir: str, root: str) -> list[bool]:
    """Return whether a job returns the rows of the log from Delta tables, and whether the derived table has them.

    The appended group is left out: it has the same keys in several partitions, which no broker writes.
    """

    def made(frame: DataFrame) -> list[str]:
        return rows(frame.where("group_id <> 'added'"))

    latest = made(jobs.latest(LogInput(spark, log_dir).last_commits))
    source = open_input(spark, root)
    assert source.coverage.partitions == 50
    derived.DERIVED = {"latest": LATEST}  # one of them: each takes some seconds
    options = parse(["tables", log_dir, "-o", root, "--derived", "--format", "delta"])
    derived.derive_delta(spark, root, options)
    stored = spark.read.format("delta").load(f"{root}/{LATEST.name}")
    return [made(jobs.latest(source.last_commits)) == latest, made(stored) == latest]


if __name__ == "__main__":
    log_dir, root = sys.argv[1:]
    spark = session("delta", master="local[2]", config=DELTA_CONFIG | SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    steps = [run(spark, log_dir, root)]
    append_commits(Path(log_dir), 20)
    try:
        run(spark, log_dir, root, at=LOG_BATCHES.name)
    except Died:
        steps.append(run(spark, log_dir, root))
    append_commits(Path(log_dir), 20)
    found = {
        "steps": steps,
        "overlapping": overlapping(spark, log_dir, root),
        "tables": results(spark, log_dir, root),
        "jobs": read_by_jobs(spark, log_dir, root),
    }
    print(json.dumps(found))
    spark.stop()
