"""Write Delta tables of a growing log: ``LOG_DIR ROOT STATE LATER_STATE``, two copies of the log. Print the rows that
runs added, and the tables, as JSON.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kproto.arrow.schemas import COMMITS, LATEST, LOG_BATCHES, Table
from kproto.spark import derived, jobs, session
from kproto.spark.arguments import parse
from kproto.spark.delta import read_state, write_delta
from kproto.spark.embedded import EmbeddedSession
from kproto.spark.engine import EMBEDDED, using
from kproto.spark.inputs import open_input
from kproto.spark.log_input import LogInput
from kproto.spark.publish import TablesError
from kproto.spark.start import DELTA_CONFIG
from kproto.spark.tables import Marks, Source
from tests.spark.settings import LOCAL

DELTA = "spark.databricks.delta"
SETTINGS = LOCAL | {
    f"{DELTA}.snapshotPartitions": "1",  # the default of 50 takes long
    f"{DELTA}.stats.collect": "false",
    f"{DELTA}.writeChecksumFile.enabled": "false",
    f"{DELTA}.allFilesInCrc.enabled": "false",
}


class Died(Exception):
    """A run dies halfway."""


def die() -> None:
    raise Died


def run(
    spark: SparkSession, log_dir: str, root: str, *, at: str | None = None, act: Callable[[], object] = die
) -> dict[str, int]:
    """Append new rows; do something before writing the table ``at``."""
    before = read_state(spark, root)
    with LogInput(spark, log_dir).read_once(*before.marks, after=before.marks) as log:

        def table(name: str, marks: Marks) -> DataFrame:
            if name == at:
                act()
            return log.table(name, marks)

        source = Source(table, log.coverage.ends, log.origin)
        return {name: added.rows for name, added in write_delta(spark, source, root, before).items()}


def overlapping(spark: SparkSession, log_dir: str, root: str) -> list[Any]:
    """Append new rows while another run, that began later does it, too; return its rows, and the error of the first."""
    other: list[Any] = []
    try:
        run(spark, log_dir, root, at=COMMITS.name, act=lambda: other.append(run(spark, log_dir, root)))
    except TablesError as error:
        other.append(str(error).partition(": ")[2])
    return other


def rows(table: Table, frame: DataFrame) -> list[dict[str, Any]]:
    found = ({name: row[name] for name in table.names} for row in frame.toArrow().to_pylist())
    return sorted(found, key=str)


def written(spark: SparkSession, root: str, table: Table) -> list[dict[str, Any]]:
    return rows(table, spark.read.format("delta").load(f"{root}/{table.name}"))


@contextmanager
def embedded(log_dir: str) -> Iterator[LogInput]:
    """Yield the log on the embedded engine."""
    session: Any = EmbeddedSession()
    with using(EMBEDDED):
        yield LogInput(session, log_dir)
    session.stop()


def results(spark: SparkSession, log_dir: str, root: str) -> dict[str, Any]:
    """Return for each table its row count, and whether its rows are the log's."""
    found = {}
    for table in (COMMITS, LOG_BATCHES):
        in_delta = written(spark, root, table)
        with embedded(log_dir) as log:
            of_log = rows(table, log.table(table.name))
        # Logs that were empty at first have a row without bytes.
        same = [row for row in in_delta if row.get("bytes") != 0] == [row for row in of_log if row.get("bytes") != 0]
        found[table.name] = {"rows": len(in_delta), "same": same}
    return found


def read_by_jobs(spark: SparkSession, log_dir: str, root: str) -> list[bool]:
    """Return whether a job returns the rows of the log from Delta tables, and whether the derived table has them."""
    with embedded(log_dir) as log:
        latest = rows(LATEST, jobs.latest(log.last_commits))
    source = open_input(spark, root)
    assert source.coverage.partitions == 4
    derived.DERIVED = {"latest": LATEST}  # one of them: each takes some seconds
    options = parse(["tables", log_dir, "-o", root, "--derived", "--format", "delta"])
    derived.derive_delta(spark, root, options)
    return [rows(LATEST, jobs.latest(source.last_commits)) == latest, written(spark, root, LATEST) == latest]


if __name__ == "__main__":
    log_dir, root, *states = sys.argv[1:]
    spark = session("delta", master="local[2]", config=DELTA_CONFIG | SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    shutil.copytree(states[0], log_dir)
    with suppress(Died):
        run(spark, log_dir, root, at=LOG_BATCHES.name)
    shutil.copytree(states[1], log_dir, dirs_exist_ok=True)
    found = {
        "overlapping": overlapping(spark, log_dir, root),
        "tables": results(spark, log_dir, root),
        "jobs": read_by_jobs(spark, log_dir, root),
    }
    print(json.dumps(found))
    spark.stop()
