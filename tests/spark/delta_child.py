"""Write Delta tables of a growing log: ``LOG_DIR ROOT STATE...``, each a later copy of the log. Print the rows added by
each step, and the tables, as JSON.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

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
    """Return for each table its row count, and whether its rows are the log's."""
    found = {}
    for kind in (COMMITS, LOG_BATCHES):
        written = spark.read.format("delta").load(f"{root}/{kind.name}")
        of_log = LogInput(spark, log_dir).table(kind.name)
        empty = 0
        if kind is LOG_BATCHES:  # logs that were empty at first have a row without bytes
            empty = written.where("bytes = 0").count()
            written, of_log = written.where("bytes > 0"), of_log.where("bytes > 0")
        found_rows = rows(select_columns(kind, written))
        same = found_rows == rows(of_log)
        found[kind.name] = {"rows": len(found_rows) + empty, "same": same}
    return found


def read_by_jobs(spark: SparkSession, log_dir: str, root: str) -> list[bool]:
    """Return whether a job returns the rows of the log from Delta tables, and whether the derived table has them."""
    latest = rows(jobs.latest(LogInput(spark, log_dir).last_commits))
    source = open_input(spark, root)
    assert source.coverage.partitions == 4
    derived.DERIVED = {"latest": LATEST}  # one of them: each takes some seconds
    options = parse(["tables", log_dir, "-o", root, "--derived", "--format", "delta"])
    derived.derive_delta(spark, root, options)
    stored = spark.read.format("delta").load(f"{root}/{LATEST.name}")
    return [rows(jobs.latest(source.last_commits)) == latest, rows(stored) == latest]


if __name__ == "__main__":
    log_dir, root, *states = sys.argv[1:]
    spark = session("delta", master="local[2]", config=DELTA_CONFIG | SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    shutil.copytree(states[0], log_dir)
    steps = [run(spark, log_dir, root)]
    shutil.copytree(states[1], log_dir, dirs_exist_ok=True)
    try:
        run(spark, log_dir, root, at=LOG_BATCHES.name)
    except Died:
        steps.append(run(spark, log_dir, root))
    shutil.copytree(states[2], log_dir, dirs_exist_ok=True)
    found = {
        "steps": steps,
        "overlapping": overlapping(spark, log_dir, root),
        "tables": results(spark, log_dir, root),
        "jobs": read_by_jobs(spark, log_dir, root),
    }
    print(json.dumps(found))
    spark.stop()
