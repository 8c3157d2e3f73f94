"""What the jobs share: the key of an offset, which commits count, and what was there before each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY = ("group_id", "topic", "partition")
"""What an offset belongs to. All of a group is in one log partition, so the order of its records is that of their
log offsets."""

MINUTE_MS = 60_000


def applied(commits: DataFrame) -> DataFrame:
    """Return the records that changed what a group has: those of no transaction, and those of a committed one."""
    return commits.where(F.col("txn_state").isin("none", "committed"))


def with_previous(commits: DataFrame) -> DataFrame:
    """Return the applied commits, without tombstones, and what each found there.

    Columns on top of those of commits: `previous_offset` (bigint; null: the first commit of its key in the log) and
    `after_loss` (boolean: a tombstone was between the two).
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
    """Whether a row of `with_previous` went backwards."""
    return F.col("committed_offset") < F.col("previous_offset")


def log_ends(log_batches: DataFrame) -> DataFrame:
    """Return topic, partition and `log_end`: the offset after the last one of its batches."""
    return log_batches.groupBy("topic", "partition").agg((F.max("last_offset") + 1).alias("log_end"))


def behind() -> Column:
    """How many offsets `committed_offset` is below `log_end`; null where either is."""
    return F.greatest(F.col("log_end") - F.col("committed_offset"), F.when(F.col("log_end").isNotNull(), F.lit(0)))


def ms_between(start: str, end: str) -> Column:
    """Whole milliseconds from one timestamp column to another."""
    return F.unix_millis(F.col(end)) - F.unix_millis(F.col(start))
