"""How far behind the groups are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F, Window
from kproto.spark.jobs.common import KEY, applied, behind
from kproto.spark.schemas import LAG, select_columns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame


def lag(commits: DataFrame, log_batches: DataFrame, *, moments: Sequence[datetime]) -> DataFrame:
    """Return how far each group was behind the end of each partition's log at some times.

    Args:
        moments: the times, rising, with a time zone. At the last one all records count, also those with later
            timestamps.
    Input:
        `COMMITS` and `LOG_BATCHES`; the batches of the topics are needed for the ends of their logs.
    Output:
        `LAG`, unordered: one row for each time and each offset that was valid then. Lag counts offsets, so also end
        markers of transactions and records that compaction removed.
    Compaction hides:
        the past: there is no row for a time before the first commit that is left of a key. At the last time it hides
        nothing. Batches have the producers' timestamps unless the topic has LogAppendTime: with wrong clocks, the past
        is wrong too.
    """
    spark = commits.sparkSession
    number = spark.createDataFrame(list(enumerate(moments)), "moment int, ts timestamp")
    last = Window.orderBy("moment").rowsBetween(Window.unboundedPreceding, 0)

    offsets = applied(commits).withColumn("moment", _first_from("log_ts", moments))
    offsets = offsets.groupBy(*KEY, "moment").agg(
        F.max_by(F.struct("committed_offset", "tombstone"), "log_offset").alias("then")
    )
    offsets_then = (
        offsets.select(*KEY)
        .distinct()
        .crossJoin(number)
        .join(offsets, [*KEY, "moment"], "left")
        .withColumn("then", F.last("then", ignorenulls=True).over(last.partitionBy(*KEY)))
        .where(F.col("then").isNotNull() & ~F.col("then.tombstone"))
    )

    topic_partition = ("topic", "partition")
    ends = log_batches.withColumn("moment", F.coalesce(_first_from("max_ts", moments), F.lit(0)))
    ends = ends.groupBy(*topic_partition, "moment").agg((F.max("last_offset") + 1).alias("log_end"))
    ended = (
        ends.select(*topic_partition)
        .distinct()
        .crossJoin(number.select("moment"))
        .join(ends, [*topic_partition, "moment"], "left")
        .withColumn("log_end", F.max("log_end").over(last.partitionBy(*topic_partition)))
    )
    rows = offsets_then.join(ended, [*topic_partition, "moment"], "left")
    return select_columns(
        LAG, rows.withColumn("committed_offset", F.col("then.committed_offset")).withColumn("lag", behind())
    )


def _first_from(timestamp: str, moments: Sequence[datetime]) -> Column:
    """Return a column: the index of the first moment at or after a timestamp, else of the last one; null for null."""
    listed = F.array(*(F.lit(moment) for moment in moments))
    earlier = F.size(F.filter(listed, lambda moment: moment < F.col(timestamp)))
    return F.when(F.col(timestamp).isNotNull(), F.least(earlier, F.lit(len(moments) - 1)))
