"""The state of each share partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F
from kproto.spark.jobs.common import log_ends
from kproto.spark.schemas import SHARE_PARTITIONS, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = ("group_id", "topic_id", "partition")
_OF_SNAPSHOT = ("tombstone", "snapshot_epoch", "state_epoch")
_OF_ALL = ("leader_epoch", "log_ts", "log_partition")


def share_partitions(states: DataFrame, topics: DataFrame, log_batches: DataFrame) -> DataFrame:
    """Return the state of each share partition at the end of the log.

    A snapshot has the whole state, an update what has changed since.

    Args:
        topics: rows with topic_id (16 bytes) and topic, as far as names are known.
    Input:
        `SHARE_STATES` and `LOG_BATCHES`; the batches of the topics are needed for the ends of their logs.
    Output:
        `SHARE_PARTITIONS`, unordered: one row for each share partition whose state was not deleted.
    Compaction hides:
        nothing: brokers delete the records before the last snapshots, and do not compact `__share_group_state`.
    """
    snapshots = (
        states.where(F.col("kind") == "snapshot")
        .groupBy(*KEY)
        .agg(
            *(F.max_by(name, "log_offset").alias(name) for name in _OF_SNAPSHOT),
            F.max("log_offset").alias("snapshot_offset"),
        )
    )
    living = snapshots.where(~F.col("tombstone"))
    since = states.join(living.select(*KEY, "snapshot_offset"), list(KEY)).where(
        F.col("log_offset") >= F.col("snapshot_offset")
    )
    known = since.where(~F.col("tombstone")).groupBy(*KEY)
    last = known.agg(
        *(F.max_by(name, "log_offset").alias(name) for name in _OF_ALL),
        F.max("snapshot_epoch").alias("snapshot_epoch"),
        F.max("log_offset").alias("log_offset"),
        (F.count("*") - 1).alias("updates"),
    )
    for name in ("start_offset", "delivery_complete_count"):
        found = since.where(F.col(name).isNotNull()).groupBy(*KEY).agg(F.max_by(name, "log_offset").alias(name))
        last = last.join(found, list(KEY), "left")
    rows = last.join(living.select(*KEY, "state_epoch"), list(KEY)).join(topics, "topic_id", "left")
    behind = F.greatest(F.col("log_end") - F.col("start_offset"), F.lit(0))
    return select_columns(
        SHARE_PARTITIONS,
        rows.join(log_ends(log_batches), ["topic", "partition"], "left")
        .withColumn("known", F.col("log_end").isNotNull() & F.col("start_offset").isNotNull())
        .withColumn("unfinished", F.when(F.col("known"), behind - F.coalesce("delivery_complete_count", F.lit(0))))
        .withColumn("updated_ts", F.col("log_ts")),
    )
