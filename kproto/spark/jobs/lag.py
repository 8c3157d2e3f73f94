"""How far behind is everybody?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from kproto.spark.jobs.common import KEY, applied, behind
from kproto.spark.schemas import LAG, select_columns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame


def lag(commits: DataFrame, log_batches: DataFrame, *, moments: Sequence[datetime]) -> DataFrame:
    """Return how far each group was behind the end of each partition's log at some moments.

    Args:
        moments: when, rising (with a time zone). At the last one everything counts, also what is stamped later.
    Input:
        `COMMITS` and `LOG_BATCHES`; only batches of the topics themselves tell where their logs end.
    Output:
        `LAG`, in no order: one row for each moment and each offset that there was then. Lag in offsets: markers of
        transactions and records that compaction took count as well.
    Compaction hides:
        the past: before the last commit of a key there may be nothing, and then there is no row. Of the last moment
        it hides nothing. Timestamps of batches are the producers' own unless the topic has LogAppendTime: where their
        clocks are wrong, so is the past.
    """
    spark = commits.sparkSession
    number = spark.createDataFrame(list(enumerate(moments)), "moment int, ts timestamp")
    last = Window.orderBy("moment").rowsBetween(Window.unboundedPreceding, 0)

    offsets = applied(commits).withColumn("moment", _first_from("log_ts", moments))
    offsets = offsets.groupBy(*KEY, "moment").agg(
        F.max_by(F.struct("committed_offset", "tombstone"), "log_offset").alias("then")
    )
    held = (
        offsets.select(*KEY)
        .distinct()
        .crossJoin(number)
        .join(offsets, [*KEY, "moment"], "left")
        .withColumn("then", F.last("then", ignorenulls=True).over(last.partitionBy(*KEY)))
        .where(F.col("then").isNotNull() & ~F.col("then.tombstone"))
    )

    place = ("topic", "partition")
    ends = log_batches.withColumn("moment", F.coalesce(_first_from("max_ts", moments), F.lit(0)))
    ends = ends.groupBy(*place, "moment").agg((F.max("last_offset") + 1).alias("log_end"))
    ended = (
        ends.select(*place)
        .distinct()
        .crossJoin(number.select("moment"))
        .join(ends, [*place, "moment"], "left")
        .withColumn("log_end", F.max("log_end").over(last.partitionBy(*place)))
    )
    rows = held.join(ended, [*place, "moment"], "left")
    return select_columns(
        LAG, rows.withColumn("committed_offset", F.col("then.committed_offset")).withColumn("lag", behind())
    )


def _first_from(timestamp: str, moments: Sequence[datetime]) -> Column:
    """Return the number of the first moment at or after a timestamp, or of the last moment; null for null."""
    listed = F.array(*(F.lit(moment) for moment in moments))
    earlier = F.size(F.filter(listed, lambda moment: moment < F.col(timestamp)))
    return F.when(F.col(timestamp).isNotNull(), F.least(earlier, F.lit(len(moments) - 1)))
