"""Parts that several jobs use: the key of an offset, the commits that count, and the commit before each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY = ("group_id", "topic", "partition")
"""The key of a committed offset. All records of a group are in one log partition, so log offsets order them."""

MINUTE_MS = 60_000


def applied(commits: DataFrame) -> DataFrame:
    """Return the records that count: those outside of transactions, and those of committed transactions."""
    return commits.where(F.col("txn_state").isin("none", "committed"))


def with_previous(commits: DataFrame) -> DataFrame:
    """Return the applied commits without tombstones, each with the commit before it.

    Additional columns: `previous_offset` (bigint; null: the first commit of its key in the log) and `after_loss`
    (boolean: a tombstone was between the two).
    """
    in_order = Window.partitionBy(*KEY).orderBy("log_offset")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    return (
        applied(commits)
        .withColumn("previous_offset", F.last("committed_offset", ignorenulls=True).over(before))
        .withColumn("after_loss", F.coalesce(F.lag("tombstone").over(in_order), F.lit(False)))
        .where(~F.col("tombstone"))
    )


def went_back() -> Column:
    """Return a column: whether a row of `with_previous` went backwards."""
    return F.col("committed_offset") < F.col("previous_offset")


def log_ends(log_batches: DataFrame) -> DataFrame:
    """Return topic, partition and `log_end`, the offset after the last batch."""
    return log_batches.groupBy("topic", "partition").agg((F.max("last_offset") + 1).alias("log_end"))


def behind() -> Column:
    """Return a column: how many offsets `committed_offset` is below `log_end`; null where either is null."""
    return F.greatest(F.col("log_end") - F.col("committed_offset"), F.when(F.col("log_end").isNotNull(), F.lit(0)))


def ms_between(start: str, end: str) -> Column:
    """Return a column: whole milliseconds from one timestamp column to another."""
    return F.unix_millis(F.col(end)) - F.unix_millis(F.col(start))
