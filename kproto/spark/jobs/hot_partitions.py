"""The hot partitions of the offsets topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F, Window
from kproto.spark.jobs.common import batches_of_offsets_topic
from kproto.spark.schemas import HOT_PARTITIONS, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def hot_partitions(commits: DataFrame, log_batches: DataFrame) -> DataFrame:
    """Return the load of each partition of the offsets topic, and the group with the most commits in it.

    The hash of the group id decides the partition of all its records, so a partition is hot because of one group, or
    because of many groups that share it.

    Input:
        `COMMITS` and `LOG_BATCHES`.
    Output:
        `HOT_PARTITIONS`, unordered: one row for each partition that has a batch. Commits are without tombstones, in
        any transaction state; bytes are of all batches; shares are from 0 to 1. Of groups with equally many commits,
        the first by name is the top group.
    Compaction hides:
        commits: a cleaned segment has one row for each key, so a group with many partitions looks hotter than a group
        that commits often.
    """
    by_group = (
        commits.where(~F.col("tombstone")).groupBy("log_partition", "group_id").agg(F.count("*").alias("group_commits"))
    )
    first = Window.partitionBy("log_partition").orderBy(F.col("group_commits").desc(), "group_id")
    carried = (
        by_group.withColumn("rank", F.row_number().over(first))
        .groupBy("log_partition")
        .agg(
            F.sum("group_commits").alias("commits"),
            F.count("*").alias("groups"),
            F.max(F.when(F.col("rank") == 1, F.col("group_id"))).alias("top_group"),
            F.max("group_commits").alias("top_commits"),
        )
    )
    sizes = (
        batches_of_offsets_topic(log_batches)
        .groupBy(F.col("partition").alias("log_partition"))
        .agg(F.sum("bytes").alias("bytes"))
    )
    partitions = carried.join(sizes, "log_partition", "full").fillna(0, ["commits", "groups"])
    # A few rows, so all of them fit into one. A window over all rows would do too, but Spark warns about it.
    rows = F.collect_list(F.struct(*partitions.columns))
    together = partitions.agg(F.sum("commits").alias("all_commits"), rows.alias("rows"))
    return select_columns(
        HOT_PARTITIONS,
        together.select("all_commits", F.inline("rows"))
        .withColumn("share", F.try_divide("commits", "all_commits"))
        .withColumn("top_share", F.try_divide("top_commits", "commits")),
    )
