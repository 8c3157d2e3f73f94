"""Write a log to Delta tables, and read them: each table is atomic by itself.

Theory of operation. A run reads the version of a table, computes the marks of the table, and appends the rows after the
marks as transaction ``version + 1`` of one application id. Of two runs that overlap, Delta commits the first one; the
second has the same number and is skipped or fails. Its rows are added by the next run, so no row is written twice.

Rows are read several times, and the log may belong to a running broker. All reads of commits therefore end where the
log ended at the beginning: a transaction that begins later is not read.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.arrow.schemas import COMMITS
from kproto.errors import NoLog
from kproto.logs.locations import location
from kproto.logs.remote import UnknownStore
from kproto.spark.engine import F
from kproto.spark.publish import TablesError
from kproto.spark.schemas import select_columns
from kproto.spark.tables import GROWING, Added, Origin, by_date, check_it_is_the_same, later, marks_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from kproto.arrow.schemas import Table
    from kproto.spark.tables import Marks, Source

APPLICATION = "kproto.tables"
CONFLICTS = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED", "Concurrent", "ChangedException")
"""Parts of the errors of Delta when another run committed first."""


def is_delta(path: str) -> bool:
    """Return whether a path or URI has Delta tables; if fsspec does not know the scheme, Spark may: see `check_delta`.

    Raises:
        MissingPackage: the scheme needs a package.
        StoreError: the store cannot be reached, or refuses.
    """
    try:
        return (location(path) / COMMITS.name / "_delta_log").is_dir()
    except UnknownStore:
        return True


def check_delta(spark: SparkSession, root: str) -> None:
    """Look for Delta tables at a URI, with Hadoop's file systems as Spark configures them.

    Raises:
        NoLog: there are none, or Spark cannot read from there.
    """
    java, context = spark.sparkContext._jvm, spark.sparkContext._jsc
    assert java is not None, "a session has a Java"
    assert context is not None, "a session has a context"
    commits = f"{root}/{COMMITS.name}/_delta_log"
    try:
        folder = java.org.apache.hadoop.fs.Path(commits)
        found = folder.getFileSystem(context.hadoopConfiguration()).listStatusIterator(folder).hasNext()
    except Exception as error:
        cause = getattr(error, "java_exception", None)  # of an error of py4j, which has no types
        if cause is None:
            raise
        if "FileNotFoundException" not in cause.toString():
            text = str(cause.getMessage() or cause.toString()).partition("\n")[0]
            raise NoLog(f"{root}: Spark cannot read it: {text}") from None
        found = False
    if not found:
        raise NoLog(f"{root}: no Delta tables")


def read_delta(spark: SparkSession, root: str, table: Table) -> DataFrame:
    return select_columns(table, spark.read.format("delta").load(f"{root}/{table.name}"))


def read_origin(spark: SparkSession, root: str) -> Origin:
    """Return what the last commit of the commits table says about its log."""
    return _origin(_history(spark, f"{root}/{COMMITS.name}"))


def _origin(history: list[Any]) -> Origin:
    found = [row for row in history if row["userMetadata"]]
    return Origin.from_json(json.loads(found[0]["userMetadata"])["origin"] if found else None)


def table_size(spark: SparkSession, root: str) -> tuple[int, int]:
    """Return the number and the bytes of the files of the three tables."""
    details = [spark.sql(f"DESCRIBE DETAIL delta.`{root}/{grown.name}`").collect()[0] for grown in GROWING]
    return sum(row["numFiles"] for row in details), sum(row["sizeInBytes"] for row in details)


class DeltaState(NamedTuple):
    """The three tables below a path or URI at the beginning of a run."""

    versions: Mapping[str, int | None]
    """By table; None: there is no table yet."""
    marks: dict[str, Marks]
    origin: Origin


def read_state(spark: SparkSession, root: str) -> DeltaState:
    """Return the state of the tables before a run reads the log."""
    folders = {grown.name: f"{root}/{grown.name}" for grown in GROWING}
    found = {name: _history(spark, folder) if _is_table(spark, folder) else [] for name, folder in folders.items()}
    versions = {name: history[0]["version"] if history else None for name, history in found.items()}
    marks: dict[str, Marks] = {}
    for grown in GROWING:  # after the versions: see above
        marks[grown.name] = {}
        if versions[grown.name] is not None:
            of_table = marks_of(grown, spark.read.format("delta").load(folders[grown.name]))
            marks[grown.name] = {partition: mark for partition, (mark, _) in of_table.items()}
    return DeltaState(versions, marks, _origin(found[COMMITS.name]))


def write_delta(spark: SparkSession, source: Source, root: str, before: DeltaState) -> dict[str, Added]:
    """Append the new rows of a log to the Delta tables below a path or URI; return the counts by table.

    Args:
        before: the state of the tables before the log was read.

    Raises:
        TablesError: the log ends before the tables, so it is another log; or another run wrote at the same time.
    """
    check_it_is_the_same(source, before.marks, root, before.origin.identity)
    added = {}
    for grown in GROWING:
        rows, waiting = later(spark, grown, source, before.marks[grown.name]), 0
        if grown.table is COMMITS:
            rows, waiting = _settled(spark, rows, source.ends)
        origin = source.origin.after(before.origin, waiting=waiting)
        version = before.versions[grown.name]
        count = 0
        if version is None or not rows.isEmpty():
            count = _append(spark, by_date(grown, rows), f"{root}/{grown.name}", version, origin)
        added[grown.name] = Added(count, waiting)
    return added


def _append(spark: SparkSession, rows: DataFrame, folder: str, version: int | None, origin: Origin) -> int:
    """Append rows to a table that had a version (None: a new one); return their number."""
    metadata = json.dumps({"run": str(uuid.uuid4()), "origin": origin.to_json()})
    writer = rows.write.format("delta").mode("append").partitionBy("date").option("userMetadata", metadata)
    number = 0 if version is None else version + 1
    taken = TablesError(f"{folder}: another `tables` wrote there meanwhile: run it again for the rest")
    try:
        writer.option("txnAppId", APPLICATION).option("txnVersion", str(number)).save(folder)
    except Exception as error:
        if any(name in str(error) for name in CONFLICTS):
            raise taken from None
        raise
    for row in _history(spark, folder):
        if row["userMetadata"] == metadata:
            return int(row["operationMetrics"].get("numOutputRows", 0))
    raise taken


def _settled(spark: SparkSession, commits: DataFrame, ends: Mapping[int | None, int]) -> tuple[DataFrame, int]:
    """Return the commits before the first pending one of each partition, and the number of the others."""
    known = _limits(spark, ends)
    read = commits.join(F.broadcast(known), "log_partition").where(F.col("log_offset") <= F.col("limit")).drop("limit")
    pending = read.where(F.col("txn_state") == "pending").groupBy("log_partition")
    first = {row["log_partition"]: row["limit"] for row in pending.agg(F.min("log_offset").alias("limit")).collect()}
    if not first:
        return read.select(*COMMITS.names), 0
    with_limit = read.join(F.broadcast(_limits(spark, first)), "log_partition", "left")
    is_before = F.col("limit").isNull() | (F.col("log_offset") < F.col("limit"))
    waiting = with_limit.where(~is_before).count()
    return with_limit.where(is_before).select(*COMMITS.names), waiting


def _limits(spark: SparkSession, offsets: Mapping[int | None, int]) -> DataFrame:
    return spark.createDataFrame(list(offsets.items()), "log_partition int, limit bigint")


def _is_table(spark: SparkSession, folder: str) -> bool:
    java = spark.sparkContext._jvm
    assert java is not None, "a session has a Java"
    return bool(java.io.delta.tables.DeltaTable.isDeltaTable(folder))


def _history(spark: SparkSession, folder: str) -> list[Any]:
    """Return the newest commits of a table, the newest first."""
    return spark.sql(f"DESCRIBE HISTORY delta.`{folder}` LIMIT 20").collect()
