"""The offsets.retention.minutes that groups need when their overrides are gone (KIP-211)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F
from kproto.spark.jobs.common import KEY, MINUTE_MS, ms_between
from kproto.spark.schemas import RETENTION_AUDIT, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def retention_audit(commits: DataFrame, *, retention_minutes: int) -> DataFrame:
    """Return KIP-211's advice for each group: the longest retention that it requested, or the broker's, in minutes.

    A commit with a retention of its own (`retention_time` of OffsetCommit v2 to v4) is stored with an expire timestamp.
    Brokers before 2.1 store one with every commit, so a timestamp that is exactly the broker's retention after the
    commit does not count as a request: the current setting is enough for it either way.

    Args:
        retention_minutes: offsets.retention.minutes of the brokers that wrote the log.
    Input:
        `COMMITS`.
    Output:
        `RETENTION_AUDIT`, unordered: one row for each group with a commit. Retentions are in milliseconds. The
        recommended minutes are the longest retention rounded up, at least `retention_minutes`; the setting that is
        enough for all groups is their maximum. Commits in aborted transactions count: their clients will send the same
        retention again. A group without offsets (`has_offsets`) was deleted or lost all of them: its clients may be
        gone for good.
    Compaction hides:
        overrides: if a client requests different retentions, the longest one that is left of each key is a lower bound.
        `n_commits` and `n_overrides` are lower bounds too, and `first_seen` may be too late.
    """
    override = F.when(F.col("retention_ms") != retention_minutes * MINUTE_MS, F.col("retention_ms"))
    is_commit = ~F.col("tombstone")
    seen = F.when(is_commit, F.col("log_ts"))
    # Also a commit in an open transaction: the group is there to end it.
    last = F.max_by(is_commit, F.when(~F.col("txn_state").eqNullSafe("aborted"), F.col("log_offset")))
    keys = (
        commits.withColumn("retention_ms", ms_between("commit_ts", "expire_ts"))
        .withColumn("override_ms", override)
        .groupBy(*KEY)
        .agg(
            F.max("override_ms").alias("max_override_ms"),
            F.count("override_ms").alias("n_overrides"),
            F.count_if(is_commit).alias("n_commits"),
            F.min(seen).alias("first_seen"),
            F.max(seen).alias("last_seen"),
            F.coalesce(last, F.lit(False)).alias("has_offsets"),
        )
    )
    groups = keys.groupBy("group_id").agg(
        F.max("max_override_ms").alias("max_override_ms"),
        F.sum("n_overrides").alias("n_overrides"),
        F.sum("n_commits").alias("n_commits"),
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.bool_or("has_offsets").alias("has_offsets"),
    )
    groups = groups.where(F.col("n_commits") > 0)
    rounded_up = F.ceil(F.col("max_override_ms") / MINUTE_MS)
    return select_columns(
        RETENTION_AUDIT, groups.withColumn("recommended_minutes", F.greatest(rounded_up, F.lit(retention_minutes)))
    )
