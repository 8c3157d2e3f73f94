"""Results of jobs as tables beside those of the log. Each run computes them again and replaces each in one rename.

Theory of operation. A result depends on the whole log, so it cannot grow as the tables of the log do: one commit
changes the latest offset and everything computed from it. Results are computed from the tables, which may have rows
that the log has lost since. A result is one file with a fixed name: a rename replaces it, and a reader that has the old
file open reads it to its end. All results are computed before the first one is replaced. A run that dies therefore
leaves the old results, or staged files that the next run publishes (`publish`).

They are an option because each run reads all tables, while appending new rows to the tables costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.arrow.schemas import LATEST, Table
from kproto.spark.commands import JOBS
from kproto.spark.inputs import AtomicInput, TablesInput
from kproto.spark.output import ordered, parquet_as_declared, spark_path
from kproto.spark.publish import Publication
from kproto.spark.schemas import GROUP_EXPIRY, HOT_PARTITIONS, LAG, RATES, RETENTION_AUDIT, REWINDS, STALLED

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from kproto.spark.atomic_tables import AtomicTables
    from kproto.spark.input import Input

DERIVED = {
    "latest": LATEST,
    "retention-audit": RETENTION_AUDIT,
    "expiry": GROUP_EXPIRY,
    "rates": RATES,
    "hot-partitions": HOT_PARTITIONS,
    "lag": LAG,
    "rewinds": REWINDS,
    "stalled": STALLED,
}
"""The table of each job whose result is stored."""


def file_of(root: Path, table: Table) -> Path:
    """Return the path of the one file of a derived table."""
    return root / table.name / f"{table.name}.parquet"


def derive_parquet(spark: SparkSession, root: Path, options: Namespace) -> dict[str, int]:
    """Compute and replace the derived tables of a directory; return the number of rows of each.

    Args:
        options: the options of the jobs, under their names on the command line.

    Raises:
        TablesError: another process is writing there.
    """
    import pyarrow.parquet as pq

    publication = Publication(root)
    with publication.writing():
        source = TablesInput(spark, str(root))
        counts = {}
        for job, table in DERIVED.items():
            staged = file_of(publication.staged, table)
            _save(_result(source, job, options), publication.scratch / table.name, staged)
            counts[table.name] = pq.read_metadata(staged).num_rows
        publication.publish(publication.state())
        return counts


def derive_atomic(tables: AtomicTables, options: Namespace) -> dict[str, int]:
    """Compute and replace the derived tables of another format, each atomically; return their row counts."""
    source = AtomicInput(tables)
    return {table.name: tables.replace(table, _result(source, job, options)) for job, table in DERIVED.items()}


def _result(source: Input, job: str, options: Namespace) -> DataFrame:
    """Return the rows of a job in one Spark partition, sorted."""
    return ordered(JOBS[job].run(source, options).repartition(1), JOBS[job].order)


def _save(rows: DataFrame, folder: Path, file: Path) -> None:
    parquet_as_declared(rows.sparkSession)
    rows.write.option("compression", "zstd").parquet(spark_path(folder))
    (part,) = folder.glob("*.parquet")
    file.parent.mkdir(parents=True)
    part.rename(file)
