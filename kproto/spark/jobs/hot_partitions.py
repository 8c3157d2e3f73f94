"""Where are the hot partitions of the offsets topic?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark.schemas import HOT_PARTITIONS, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def hot_partitions(commits: DataFrame, log_batches: DataFrame) -> DataFrame:
    """Return what each partition of the offsets topic carries, and who is the cause.

    All of a group goes to one partition, by the hash of its name: so a partition is hot because of one group, or
    because of many that met there.

    Input:
        `COMMITS` and `LOG_BATCHES`.
    Output:
        `HOT_PARTITIONS`, in no order: one row for each partition that has a batch. Commits without tombstones, of any
        transaction; bytes of its batches on disk, of whatever they hold; shares from 0 to 1. Of groups that commit as
        much as each other, the first by name is the top one.
    Compaction hides:
        commits: what is left of a cleaned segment is a row for each key, so that a group with many partitions looks
        hotter than one that commits often.
    """
    by_group = (
        commits.where(~F.col("tombstone")).groupBy("log_partition", "group_id").agg(F.count("*").alias("group_commits"))
    )
    first = Window.partitionBy("log_partition").orderBy(F.col("group_commits").desc(), "group_id")
    carried = (
        by_group.withColumn("place", F.row_number().over(first))
        .groupBy("log_partition")
        .agg(
            F.sum("group_commits").alias("commits"),
            F.count("*").alias("groups"),
            F.max(F.when(F.col("place") == 1, F.col("group_id"))).alias("top_group"),
            F.max("group_commits").alias("top_commits"),
        )
    )
    sizes = (
        log_batches.where(F.col("topic") == OFFSETS_TOPIC)
        .groupBy(F.col("partition").alias("log_partition"))
        .agg(F.sum("bytes").alias("bytes"))
    )
    partitions = carried.join(sizes, "log_partition", "full").fillna(0, ["commits", "groups"])
    # A few rows: together in one, as a window over all would be, but without Spark's warning about those.
    rows = F.collect_list(F.struct(*partitions.columns))
    together = partitions.agg(F.sum("commits").alias("all_commits"), rows.alias("rows"))
    return select_columns(
        HOT_PARTITIONS,
        together.select("all_commits", F.inline("rows"))
        .withColumn("share", F.try_divide("commits", "all_commits"))
        .withColumn("top_share", F.try_divide("top_commits", "commits")),
    )
