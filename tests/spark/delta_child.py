"""Write Delta tables of a growing log: ``LOG_DIR ROOT``. Print the rows added by each step, and the tables, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.offsets_log import append_commits
from kproto.arrow.schemas import COMMITS, LOG_BATCHES
from kproto.spark import session
from kproto.spark.cli import DELTA_CONFIG
from kproto.spark.inputs import LogInput
from kproto.spark.schemas import select_columns
from kproto.spark.tables import Marks, Source, write_delta

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",  # the default of 50 takes long
}


class Died(Exception):
    """A run dies halfway."""


def run(spark: SparkSession, log_dir: str, root: str, *, dies_at: str | None = None) -> dict[str, int]:
    """Append new rows; die before writing the table ``dies_at``."""
    log = LogInput(spark, log_dir)

    def table(name: str, marks: Marks) -> DataFrame:
        if name == dies_at:
            raise Died
        return log.table(name, marks)

    return {name: added.rows for name, added in write_delta(spark, Source(table, log.coverage.ends), root).items()}


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.toArrow().to_pylist()))


def results(spark: SparkSession, log_dir: str, root: str) -> dict[str, Any]:
    """Return for each table its row count, whether its rows are the log's, and its number of days."""
    found = {}
    for kind in (COMMITS, LOG_BATCHES):
        written = spark.read.format("delta").load(f"{root}/{kind.name}")
        found_rows = rows(select_columns(kind, written))
        days = len(set(written.select("date").toArrow()["date"].to_pylist()))
        same = found_rows == rows(LogInput(spark, log_dir).table(kind.name))
        found[kind.name] = {"rows": len(found_rows), "same": same, "days": days}
    return found


if __name__ == "__main__":
    log_dir, root = sys.argv[1:]
    spark = session("delta", master="local[2]", config=DELTA_CONFIG | SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    steps = [run(spark, log_dir, root), run(spark, log_dir, root)]
    append_commits(Path(log_dir), 20)
    try:
        run(spark, log_dir, root, dies_at=LOG_BATCHES.name)
    except Died:
        steps.append(run(spark, log_dir, root))
    print(json.dumps({"steps": steps, "tables": results(spark, log_dir, root)}))
    spark.stop()
