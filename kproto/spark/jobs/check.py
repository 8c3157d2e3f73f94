"""The rows that break an invariant of offsets, groups and logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F, Window
from kproto.spark.jobs.common import log_ends
from kproto.spark.jobs.latest import latest
from kproto.spark.schemas import CHECK, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check(
    commits: DataFrame, group_metadata: DataFrame, log_batches: DataFrame, cleaned: DataFrame | None
) -> DataFrame:
    """Return the rows that break an invariant.

    - ``offset beyond the end``: a valid offset is at most the end of the topic's log.
    - ``generation fell``: from record to record, the generation of a group does not fall until the group is removed.
    - ``another partition``: all records of a group are in one partition of the offsets topic, that of its coordinator.
    - ``missing offsets``: each batch begins after the last offset of the batch before it. Below the offset up to which
      the cleaner has compacted the log, a batch may begin later.

    Args:
        cleaned: rows with topic, partition and `cleaned_to`, the offset up to which the cleaner has compacted a log;
            it has compacted no other log of the input. None: unknown, and no offsets count as missing.
    Input:
        `COMMITS`, `GROUP_METADATA` and `LOG_BATCHES`; ends are known of the topics whose batches are in the input.
    Output:
        `CHECK`, unordered. No row: nothing breaks an invariant.
    Compaction hides:
        generations that the cleaner removed.
    """
    found = [_beyond_the_end(commits, log_batches), _fallen_generations(group_metadata)]
    found.append(_other_partitions(commits, group_metadata))
    if cleaned is not None:
        found.append(_missing_offsets(log_batches, cleaned))
    rows, *others = found
    for other in others:
        rows = rows.unionByName(other, allowMissingColumns=True)
    return select_columns(CHECK, rows)


def _beyond_the_end(commits: DataFrame, log_batches: DataFrame) -> DataFrame:
    return (
        latest(commits)
        .join(log_ends(log_batches), ["topic", "partition"])
        .where(F.col("committed_offset") > F.col("log_end"))
        .select(
            F.lit("offset beyond the end").alias("invariant"),
            *("group_id", "topic", "partition", "log_partition", "log_offset"),
            F.col("commit_ts").alias("ts"),
            F.col("log_end").alias("limit"),
            F.col("committed_offset").alias("value"),
        )
    )


def _fallen_generations(group_metadata: DataFrame) -> DataFrame:
    in_order = Window.partitionBy("group_id").orderBy("log_offset")
    about_groups = group_metadata.where(F.col("member_id").isNull())
    before = about_groups.withColumn("before", F.lag("generation").over(in_order))  # null after a tombstone
    return before.where(F.col("generation") < F.col("before")).select(
        F.lit("generation fell").alias("invariant"),
        *("group_id", "log_partition", "log_offset"),
        F.col("log_ts").alias("ts"),
        F.col("before").cast("bigint").alias("limit"),
        F.col("generation").cast("bigint").alias("value"),
    )


def _other_partitions(commits: DataFrame, group_metadata: DataFrame) -> DataFrame:
    names = ("group_id", "log_partition", "log_offset", "log_ts")
    records = commits.select(*names).unionByName(group_metadata.select(*names))
    by_partition = records.groupBy("group_id", "log_partition").agg(
        F.count("*").alias("records"), F.min("log_offset").alias("log_offset"), F.min("log_ts").alias("ts")
    )
    most = Window.partitionBy("group_id").orderBy(F.col("records").desc(), "log_partition")
    numbered = by_partition.withColumn("number", F.row_number().over(most))
    home = numbered.where(F.col("number") == 1).select("group_id", F.col("log_partition").alias("home"))
    return (
        numbered.where(F.col("number") > 1)
        .join(home, "group_id")
        .select(
            F.lit("another partition").alias("invariant"),
            *("group_id", "log_partition", "log_offset", "ts"),
            F.col("home").cast("bigint").alias("limit"),
            F.col("log_partition").cast("bigint").alias("value"),
        )
    )


def _missing_offsets(log_batches: DataFrame, cleaned: DataFrame) -> DataFrame:
    # Of a log whose newest segment is empty, the row that says so has the last offset of the last batch.
    in_order = Window.partitionBy("topic", "partition").orderBy("last_offset", "base_offset")
    following = log_batches.withColumn("next", F.lag("last_offset").over(in_order) + 1)
    known = following.join(F.broadcast(cleaned), ["topic", "partition"], "left")
    # With null in `base_offset`, the first offset of the batch is unknown.
    return (
        known.withColumn("limit", F.greatest("next", F.coalesce("cleaned_to", F.lit(0))))
        .where(F.col("next").isNotNull() & (F.col("base_offset") > F.col("limit")))
        .select(
            F.lit("missing offsets").alias("invariant"),
            *("topic", "partition"),
            F.col("max_ts").alias("ts"),
            "limit",
            F.col("base_offset").alias("value"),
        )
    )
