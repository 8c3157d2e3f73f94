"""Write Delta and Iceberg tables of a growing log: ``LOG_DIR ROOT STATE LATER_STATE``, two copies of the log. Print the
rows that runs added, and the tables, as JSON.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from kproto.arrow.schemas import COMMITS, LATEST, LOG_BATCHES, Column, Table, Type
from kproto.spark import derived, jobs, session
from kproto.spark.arguments import parse
from kproto.spark.atomic_tables import AtomicTables
from kproto.spark.embedded import EmbeddedSession
from kproto.spark.engine import EMBEDDED, F, using
from kproto.spark.formats import ATOMIC
from kproto.spark.inputs import open_input
from kproto.spark.log_input import LogInput
from kproto.spark.packages import DELTA, ICEBERG, config_of
from kproto.spark.publish import TablesError
from kproto.spark.tables import Marks, Source
from tests.spark.settings import LOCAL

DELTA_SETTINGS = "spark.databricks.delta"
SETTINGS = LOCAL | {
    f"{DELTA_SETTINGS}.snapshotPartitions": "1",  # the default of 50 takes long
    f"{DELTA_SETTINGS}.stats.collect": "false",
    f"{DELTA_SETTINGS}.writeChecksumFile.enabled": "false",
    f"{DELTA_SETTINGS}.allFilesInCrc.enabled": "false",
}


class Died(Exception):
    """A run dies halfway."""


def die() -> None:
    raise Died


def run(
    tables: AtomicTables, log_dir: str, *, at: str | None = None, act: Callable[[], object] = die
) -> dict[str, int]:
    """Append new rows; do something before writing the table ``at``."""
    before = tables.state()
    with LogInput(tables.spark, log_dir).read_once(*before.marks, after=before.marks) as log:

        def table(name: str, marks: Marks) -> DataFrame:
            if name == at:
                act()
            return log.table(name, marks)

        source = Source(table, log.coverage.ends, log.origin)
        return {name: added.rows for name, added in tables.write(source, before).items()}


def overlapping(tables: AtomicTables, log_dir: str) -> list[Any]:
    """Append new rows while another run, that began later does it, too; return its rows, and the error of the first."""
    other: list[Any] = []
    try:
        run(tables, log_dir, at=COMMITS.name, act=lambda: other.append(run(tables, log_dir)))
    except TablesError as error:
        other.append(str(error).partition(": ")[2])
    return other


def rows(table: Table, frame: DataFrame) -> list[dict[str, Any]]:
    found = ({name: row[name] for name in table.names} for row in frame.toArrow().to_pylist())
    return sorted(found, key=str)


@contextmanager
def embedded(log_dir: str) -> Iterator[LogInput]:
    """Yield the log on the embedded engine."""
    session: Any = EmbeddedSession()
    with using(EMBEDDED):
        yield LogInput(session, log_dir)
    session.stop()


def results(tables: AtomicTables, log_dir: str) -> dict[str, Any]:
    """Return for each table its row count, and whether its rows are the log's."""
    found = {}
    for table in (COMMITS, LOG_BATCHES):
        in_tables = rows(table, tables.read(table))
        with embedded(log_dir) as log:
            of_log = rows(table, log.table(table.name))
        # Logs that were empty at first have a row without bytes.
        same = [row for row in in_tables if row.get("bytes") != 0] == [row for row in of_log if row.get("bytes") != 0]
        found[table.name] = {"rows": len(in_tables), "same": same}
    return found


def read_by_jobs(tables: AtomicTables, log_dir: str, form: str) -> list[bool]:
    """Return whether a job returns the rows of the log from the tables, and whether the derived table has them."""
    with embedded(log_dir) as log:
        latest = rows(LATEST, jobs.latest(log.last_commits))
    source = open_input(tables.spark, tables.root)
    assert source.coverage.partitions == 4
    derived.DERIVED = {"latest": LATEST}  # one of them: each takes some seconds
    options = parse(["tables", log_dir, "-o", tables.root, "--derived", "--format", form])
    found = []
    for _ in range(2):  # the second time, it replaces the first
        assert derived.derive_atomic(tables, options) == {LATEST.name: len(latest)}
        found.append(rows(LATEST, tables.read(LATEST)) == latest)
    return [rows(LATEST, jobs.latest(source.last_commits)) == latest, *found]


def compacted(tables: AtomicTables) -> list[Any]:
    """Return the numbers of files before, after, and that the result names; and whether the rows are the same."""
    before, of_before = tables.size()[0], rows(COMMITS, tables.read(COMMITS))
    fewer = sum(tables.compact(name) for name in (COMMITS.name, LOG_BATCHES.name))
    after = tables.size()[0]
    return [before - after == fewer > 0, rows(COMMITS, tables.read(COMMITS)) == of_before]


def grown(tables: AtomicTables, log_dir: str, states: list[str]) -> list[Any]:
    """Write the first state as before a column existed, and the second one after; return the values of the column."""
    new = Column("reason", Type.STRING, "a column of a later version")
    later = replace(COMMITS, columns=(*COMMITS.columns, new))
    shutil.rmtree(log_dir)
    shutil.copytree(states[0], log_dir)
    run(tables, log_dir)
    old = {row["reason"] for row in rows(later, tables.read(later))}
    before = tables.version(COMMITS.name)
    row = tables.read(later).limit(1).withColumn("reason", F.lit("asked")).withColumn("date", F.lit("2026-01-01"))
    tables.append(later, row.withColumn("date", F.col("date").cast("date")), before, "{}")
    found = [str(row["reason"]) for row in rows(later, tables.read(later))]
    return [sorted(map(str, old)), found.count("asked"), found.count("None") > 0, len(tables.read(COMMITS).columns)]


def waiting(tables: AtomicTables) -> list[int]:
    """Write no rows of a log in which 7 commits wait; return how many the tables say wait, before and after."""
    before = tables.state()
    source = Source(lambda name, _marks: tables.rows(name).limit(0), {}, replace(before.origin, waiting=7))
    tables.write(source, before)
    return [before.origin.waiting, tables.origin().waiting]


def outcome(tables: AtomicTables, form: str, log_dir: str, states: list[str]) -> dict[str, Any]:
    """Return what happens to new tables of a format."""
    shutil.rmtree(log_dir, ignore_errors=True)
    shutil.copytree(states[0], log_dir)
    with suppress(Died):
        run(tables, log_dir, at=LOG_BATCHES.name)
    shutil.copytree(states[1], log_dir, dirs_exist_ok=True)
    found = {
        "overlapping": overlapping(tables, log_dir),
        "tables": results(tables, log_dir),
        "jobs": read_by_jobs(tables, log_dir, form),
        "compacted": compacted(tables),
    }
    others = ATOMIC[form](tables.spark, f"{tables.root}-grown")
    found |= {"again": run(tables, log_dir), "waiting": waiting(tables)}
    return {**found, "grown": grown(others, log_dir, states)}


if __name__ == "__main__":
    log_dir, root, *states = sys.argv[1:]
    spark = session("tables", master="local[2]", config=config_of((DELTA, ICEBERG)) | SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    print(
        json.dumps(
            {form: outcome(tables(spark, f"{root}/{form}"), form, log_dir, states) for form, tables in ATOMIC.items()}
        )
    )
    spark.stop()
