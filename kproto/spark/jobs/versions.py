"""The clients that break on a Kafka version, over the request reports of any number of test runs."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from kproto.spark.audited import audit_here, audit_on_workers, split
from kproto.spark.engine import F, is_embedded
from kproto.spark.output import not_a_glob
from kproto.spark.schemas import VERSIONS, select_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

SCHEMA = 1
"""The `schema` of the reports that can be read."""

_REQUEST = (
    "struct<api_key: int, api: string, api_version: int, count: bigint, verdict: string, first_served_by: string, "
    "last_served_by: string>"
)
REPORTS = (
    "schema int, target string, run struct<started_at: string>, "
    "clients array<struct<client_id: string, software_name: string, software_version: string, "
    f"requests: array<{_REQUEST}>>>, "
    "problem string, _corrupt_record string"
)
"""The fields of a request report (`kproto run --report FILE.json`) that are read, and why a file was not audited."""


def read_reports(spark: SparkSession, paths: Sequence[str], words: Sequence[str] = ()) -> DataFrame:
    """Read request reports, and audit request logs, captures and metrics (`kproto.spark.audited`): files, or
    directories of them. A file that is not a report has a null `schema`.

    Args:
        words: further options of `kproto audit`.
    """
    reports, others = split(paths)
    if is_embedded():
        from kproto.spark.embedded.reports import read_reports as read_embedded

        return read_embedded(  # type: ignore[return-value]
            spark,  # type: ignore[arg-type]  # a session of the embedded engine
            reports,
            dict(zip(others, audit_here(others, words), strict=True)),
        )
    found = []
    if reports:
        files = spark.read.schema(REPORTS).json([not_a_glob(Path(path)) for path in reports], multiLine=True)
        found.append(files.withColumn("path", F.col("_metadata.file_path")).drop("_corrupt_record"))
    if others:
        read = audit_on_workers(spark, others, words).withColumn("read", F.from_json("report", REPORTS))
        found.append(read.select("read.*", "path").drop("_corrupt_record").persist())  # else each use audits again
    return reduce(lambda one, other: one.unionByName(other), found)


def versions(reports: DataFrame) -> DataFrame:
    """Return the API versions that each client software sent, and the verdicts of the reports, over all runs.

    Input:
        `read_reports`: one row for each report.
    Output:
        `VERSIONS`, unordered: one row for each software (for clients that send none, each client id), target, API and
        version. `requests` is the sum over all runs, `runs` the number of reports. A verdict holds for the target of
        its report: to check clients against several Kafka versions, run them with each.
    """
    by_client = reports.select("path", "target", "run.started_at", F.explode("clients").alias("client"))
    rows = by_client.select("path", "target", "started_at", "client.*").select(
        "*", F.explode("requests").alias("request")
    )
    rows = rows.drop("requests").select("*", "request.*")
    named = F.when(F.col("software_name").isNull(), F.col("client_id"))
    keys = ("software_name", "software_version", "target", "api_key", "api", "api_version", "verdict")
    counted = rows.groupBy(*keys, named.alias("unnamed")).agg(
        F.min("client_id").alias("least"),
        F.max("client_id").alias("greatest"),
        F.count_distinct("path").alias("runs"),
        F.sum("count").alias("requests"),
        F.min("first_served_by").alias("first_served_by"),
        F.min("last_served_by").alias("last_served_by"),
        F.min(F.to_timestamp("started_at")).alias("first_seen"),
        F.max(F.to_timestamp("started_at")).alias("last_seen"),
    )
    one_client = F.when(F.col("least") == F.col("greatest"), F.col("least"))
    return select_columns(VERSIONS, counted.withColumn("client_id", one_client))
