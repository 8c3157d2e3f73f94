"""The jobs' answers as tables beside those of the log: each is made anew, and takes the former one's place at once.

Theory of operation. An answer is of the whole log, so it can't grow as the log's own tables do: a commit changes what
is latest, and all that follows it. It is computed from those tables, which may know more than the log does by now. It
is one file, always of the same name: the rename that puts it in place takes the former one away, and whoever has that
one open reads it to its end. All of them are computed before the first is replaced, so that a run that dies leaves the
former ones, or what the next run finishes (`publish`).

They are an option, as they cost a pass over all tables each time, where what is new in the log costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.arrow.schemas import LATEST, Table
from kproto.spark.commands import JOBS
from kproto.spark.inputs import TablesInput
from kproto.spark.output import ordered, parquet_as_declared
from kproto.spark.publish import Publication
from kproto.spark.schemas import GROUP_EXPIRY, HOT_PARTITIONS, LAG, RATES, RETENTION_AUDIT, REWINDS, STALLED

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from kproto.spark.inputs import Input

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
"""The table of each job whose answer is kept."""


def place_of(root: Path, table: Table) -> Path:
    """Return the one file of a derived table."""
    return root / table.name / f"{table.name}.parquet"


def derive_parquet(spark: SparkSession, root: Path, asked: Namespace) -> dict[str, int]:
    """Make the derived tables of a directory of tables anew; return their rows, by table.

    Args:
        asked: the options of the jobs, by their names on the command line.

    Raises:
        TablesError: another one is writing there.
    """
    import pyarrow.parquet as pq

    publication = Publication(root)
    with publication.writing():
        source = TablesInput(spark, str(root))
        counts = {}
        for job, table in DERIVED.items():
            staged = place_of(publication.staged, table)
            _save(_answer(source, job, asked), publication.scratch / table.name, staged)
            counts[table.name] = pq.read_metadata(staged).num_rows
        publication.publish(publication.state())
        return counts


def _answer(source: Input, job: str, asked: Namespace) -> DataFrame:
    """Return the rows of a job, in one part and in their order."""
    return ordered(JOBS[job].run(source, asked).repartition(1), JOBS[job].order)


def _save(rows: DataFrame, folder: Path, place: Path) -> None:
    parquet_as_declared(rows.sparkSession)
    rows.write.option("compression", "zstd").parquet(folder.absolute().as_uri())
    (part,) = folder.glob("*.parquet")
    place.parent.mkdir(parents=True)
    part.rename(place)
