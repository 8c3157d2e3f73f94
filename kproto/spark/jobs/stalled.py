"""The offsets that do not move although there are records to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F, Window
from kproto.spark.jobs.common import KEY, MINUTE_MS, applied, behind, log_ends
from kproto.spark.schemas import STALLED, select_columns

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame


def stalled(commits: DataFrame, log_batches: DataFrame, *, at: datetime, minutes: int) -> DataFrame:
    """Return the offsets that have not moved for a while, although there are records to read.

    Args:
        at: the time of the question, with a time zone; not before the end of the log.
        minutes: how long an offset must not have moved.
    Input:
        `COMMITS` and `LOG_BATCHES`; the batches of the topics are needed for the ends of their logs.
    Output:
        `STALLED`, unordered: one row for each offset that has not moved for `minutes` or longer and is below the end of
        its topic's log. If that log is not in the input, there is a row with a null lag: the topic may have nothing to
        read.
    Compaction hides:
        the first commits of the offset: `since_ts` may be too late and `commits` too low, and an offset that is
        committed repeatedly may be missing.
    """
    in_order = Window.partitionBy(*KEY).orderBy("log_offset")
    moved = ~F.col("committed_offset").eqNullSafe(F.lag("committed_offset").over(in_order))
    unmoved = (
        applied(commits)
        .withColumn("run", F.sum(moved.cast("int")).over(in_order))
        .groupBy(*KEY, "run")
        .agg(
            F.first("committed_offset").alias("committed_offset"),
            F.min("log_ts").alias("since_ts"),
            F.max("log_ts").alias("last_commit_ts"),
            F.count("*").alias("commits"),
        )
    )
    names = ("committed_offset", "since_ts", "last_commit_ts", "commits")
    last = unmoved.groupBy(*KEY).agg(*(F.max_by(name, "run").alias(name) for name in names))
    age_ms = F.unix_millis(F.lit(at)) - F.unix_millis("since_ts")
    return select_columns(
        STALLED,
        last.where(F.col("committed_offset").isNotNull())
        .withColumn("stalled_minutes", F.floor(age_ms / MINUTE_MS))
        .where(F.col("stalled_minutes") >= minutes)
        .join(log_ends(log_batches), ["topic", "partition"], "left")
        .withColumn("lag", behind())
        .where(F.col("lag").isNull() | (F.col("lag") > 0)),
    )
