"""The offsets that would be lost under another offsets.retention.minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F
from kproto.spark.jobs.deadlines import NEWEST, bases, deadline
from kproto.spark.schemas import WHAT_IF, select_columns

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame


def what_if(
    commits: DataFrame,
    group_metadata: DataFrame,
    *,
    current_minutes: int,
    retention_minutes: int,
    at: datetime,
    kafka_version: str = NEWEST,
    ignore_overrides: bool = False,
) -> DataFrame:
    """Return the offsets of each group that are expired at one time under the current retention and under another.

    Args:
        current_minutes: the current offsets.retention.minutes.
        retention_minutes: the offsets.retention.minutes to try.
        at: the time, with a time zone; no client commits, joins or leaves until then.
        kafka_version: the version of the brokers, which decides the rules.
        ignore_overrides: whether the other retention also counts for offsets with an expire timestamp of their own, as
            if their clients had not requested a retention (KIP-211).
    Input:
        `COMMITS` and `GROUP_METADATA`.
    Output:
        `WHAT_IF`, unordered: one row for each group that has an offset in the log. Offsets with an expire timestamp of
        their own expire then under any retention, unless overrides are ignored.
    Compaction hides:
        nothing. Offsets that expired before the end of the log are not counted under either retention.
    """
    rows = bases(commits, group_metadata, kafka_version=kafka_version)
    both = rows.withColumn("deadline", deadline(current_minutes)).withColumn(
        "other_deadline", deadline(retention_minutes, overrides=not ignore_overrides)
    )
    return select_columns(
        WHAT_IF,
        both.groupBy("group_id").agg(
            F.count("*").alias("offsets"),
            F.min("deadline").alias("expires_ts"),
            F.min("other_deadline").alias("what_if_expires_ts"),
            F.count_if(F.col("deadline") <= F.lit(at)).alias("lost"),
            F.count_if(F.col("other_deadline") <= F.lit(at)).alias("what_if_lost"),
        ),
    )
