"""Parts that several jobs use: the key of an offset, the commits that count, and the one visible before each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark.engine import F, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY = ("group_id", "topic", "partition")
"""The key of a committed offset. All records of a group are in one log partition, so log offsets order them."""

MINUTE_MS = 60_000


def applied(commits: DataFrame) -> DataFrame:
    """Return the records that count: those outside of transactions, and those of committed transactions.

    A broker returns no others, and no state.
    """
    state = F.col("txn_state")
    return commits.where(state.isNull() | state.isin("none", "committed"))


def batches_of_offsets_topic(log_batches: DataFrame) -> DataFrame:
    """Return the rows of batches in the offsets topic: the row of an empty log has no bytes in it."""
    is_batch = F.col("bytes").isNull() | (F.col("bytes") > 0)
    return log_batches.where((F.col("topic") == OFFSETS_TOPIC) & is_batch)


def with_visible_from(commits: DataFrame, log_batches: DataFrame | None) -> DataFrame:
    """Return the applied commits with `visible_from`: the log offset at which brokers begin to return them.

    That is their own offset, or in a transaction the offset of its end marker. Without batches it is their own, and the
    commits are read once instead of twice.
    """
    counted = applied(commits)
    if log_batches is None:
        return counted.withColumn("visible_from", F.col("log_offset"))
    marker = (F.col("topic") == OFFSETS_TOPIC) & F.col("control")
    markers = log_batches.where(marker).select(
        F.col("partition").alias("log_partition"),
        "producer_id",
        F.col("last_offset").alias("log_offset"),
        F.col("last_offset").alias("marker"),
    )
    is_in_transaction = F.coalesce(F.col("txn_state") == "committed", F.lit(False))
    in_transaction = counted.where(is_in_transaction)
    # Backwards: a window up to the last row is evaluated from there for each row.
    backwards = Window.partitionBy("log_partition", "producer_id").orderBy(F.col("log_offset").desc())
    next_marker = F.last("marker", ignorenulls=True).over(backwards.rowsBetween(Window.unboundedPreceding, 0))
    ended = (
        in_transaction.unionByName(markers, allowMissingColumns=True)
        .withColumn("visible_from", F.coalesce(next_marker, F.col("log_offset")))
        .where(F.col("marker").isNull())
        .drop("marker")
    )
    plain = counted.where(~is_in_transaction).withColumn("visible_from", F.col("log_offset"))
    return plain.unionByName(ended)


def with_previous(commits: DataFrame, log_batches: DataFrame | None) -> DataFrame:
    """Return the applied commits without tombstones, each with the visible commit before it.

    Brokers return the commit with the highest log offset of those that are visible. So a commit is never returned if
    one with a higher log offset is visible before it, or from the same marker on; nor if its offset is removed while
    its transaction is open.

    Additional columns: `is_hidden` (boolean: no broker ever returned it), `previous_offset` (bigint; null: the first
    commit of its key in the log) and `after_loss` (boolean: a tombstone was between the two).
    """
    in_order = Window.partitionBy(*KEY).orderBy("visible_from", F.col("log_offset").desc())
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    highest = F.max("log_offset").over(before)

    def of_visible(name: str) -> Column:
        return F.last(F.when(~F.col("is_hidden"), F.col(name)), ignorenulls=True).over(before)

    return (
        with_visible_from(commits, log_batches)
        .withColumn("is_hidden", F.coalesce(highest > F.col("log_offset"), F.lit(False)))
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
