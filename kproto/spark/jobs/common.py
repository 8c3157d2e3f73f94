"""Parts that several jobs use: the key of an offset, the commits that count, and the one visible before each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from kproto.records.partitioning import OFFSETS_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY = ("group_id", "topic", "partition")
"""The key of a committed offset. All records of a group are in one log partition, so log offsets order them."""

MINUTE_MS = 60_000


def applied(commits: DataFrame) -> DataFrame:
    """Return the records that count: those outside of transactions, and those of committed transactions."""
    return commits.where(F.col("txn_state").isin("none", "committed"))


def with_hidden(commits: DataFrame, log_batches: DataFrame) -> DataFrame:
    """Return the applied commits with a column `is_hidden`: true for those that no broker ever returned.

    A commit in a transaction becomes visible at the end marker, unless the log has a later commit of its key that is
    visible by then: brokers keep the one with the higher log offset. So the visible commits of a key follow each other
    in the order of their log offsets.
    """
    marker = (F.col("topic") == OFFSETS_TOPIC) & F.col("control")
    markers = log_batches.where(marker).select(
        F.col("partition").alias("log_partition"),
        "producer_id",
        F.col("last_offset").alias("log_offset"),
        F.col("last_offset").alias("marker"),
    )
    counted = applied(commits)
    in_transaction = counted.where(F.col("txn_state") == "committed")
    # Spark evaluates a window that ends at the last row anew for each row, so both go backwards.
    of_producer = Window.partitionBy("log_partition", "producer_id").orderBy(F.col("log_offset").desc())
    of_key = Window.partitionBy(*KEY).orderBy(F.col("log_offset").desc())
    up_to_now = of_producer.rowsBetween(Window.unboundedPreceding, 0)
    ended = (
        in_transaction.unionByName(markers, allowMissingColumns=True)
        .withColumn("visible_from", F.last("marker", ignorenulls=True).over(up_to_now))
        .where(F.col("marker").isNull())
        .drop("marker")
    )
    plain = counted.where(F.col("txn_state") == "none").withColumn("visible_from", F.col("log_offset"))
    later = of_key.rowsBetween(Window.unboundedPreceding, -1)
    next_visible = F.min(F.when(~F.col("tombstone"), F.col("visible_from"))).over(later)
    is_hidden = F.coalesce(F.col("next_visible") <= F.col("visible_from"), F.lit(False))
    rows = plain.unionByName(ended).withColumn("next_visible", next_visible)
    return rows.withColumn("is_hidden", is_hidden).drop("visible_from", "next_visible")


def with_previous(commits: DataFrame, log_batches: DataFrame) -> DataFrame:
    """Return the applied commits without tombstones, each with the visible commit before it.

    Additional columns: `is_hidden` as in `with_hidden`, `previous_offset` (bigint; null: the first commit of its key in
    the log) and `after_loss` (boolean: a tombstone was between the two).
    """
    in_order = Window.partitionBy(*KEY).orderBy("log_offset")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)

    def of_visible(name: str) -> Column:
        return F.last(F.when(~F.col("is_hidden"), F.col(name)), ignorenulls=True).over(before)

    return (
        with_hidden(commits, log_batches)
        .withColumn("previous_offset", of_visible("committed_offset"))
        .withColumn("after_loss", F.coalesce(of_visible("tombstone"), F.lit(False)))
        .where(~F.col("tombstone"))
    )


def went_back() -> Column:
    """Return a column: whether a row of `with_previous` went backwards, visibly."""
    return ~F.col("is_hidden") & (F.col("committed_offset") < F.col("previous_offset"))


def log_ends(log_batches: DataFrame) -> DataFrame:
    """Return topic, partition and `log_end`, the offset after the last batch."""
    return log_batches.groupBy("topic", "partition").agg((F.max("last_offset") + 1).alias("log_end"))


def behind() -> Column:
    """Return a column: how many offsets `committed_offset` is below `log_end`; null where either is null."""
    return F.greatest(F.col("log_end") - F.col("committed_offset"), F.when(F.col("log_end").isNotNull(), F.lit(0)))


def ms_between(start: str, end: str) -> Column:
    """Return a column: whole milliseconds from one timestamp column to another."""
    return F.unix_millis(F.col(end)) - F.unix_millis(F.col(start))
