"""Who is stalled?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from kproto.spark.jobs.common import KEY, MINUTE_MS, applied, behind, log_ends
from kproto.spark.schemas import STALLED, select_columns

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame


def stalled(commits: DataFrame, log_batches: DataFrame, *, at: datetime, minutes: int) -> DataFrame:
    """Return the offsets that have not moved for a while, although there is something to read.

    Args:
        at: the moment asked about (with a time zone), not before the end of the log.
        minutes: how long an offset must have stood.
    Input:
        `COMMITS` and `LOG_BATCHES`; only batches of the topics themselves tell where their logs end.
    Output:
        `STALLED`, in no order: one row for each offset that stands since `minutes` or longer and is below the end of
        its topic's log. Where that log is not given, an offset that stands is a row too, with a null lag: its topic
        may have nothing to read.
    Compaction hides:
        the first commits at this offset: `since_ts` may be too late, `commits` too low and an offset that is
        committed again and again be missing.
    """
    in_order = Window.partitionBy(*KEY).orderBy("log_offset")
    moved = ~F.col("committed_offset").eqNullSafe(F.lag("committed_offset").over(in_order))
    stands = (
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
    last = stands.groupBy(*KEY).agg(*(F.max_by(name, "run").alias(name) for name in names))
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
