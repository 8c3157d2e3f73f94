"""What must offsets.retention.minutes be, so that nobody loses offsets when the overrides are gone?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from kproto.spark.jobs.common import MINUTE_MS, ms_between
from kproto.spark.schemas import RETENTION_AUDIT, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def retention_audit(commits: DataFrame, *, retention_minutes: int) -> DataFrame:
    """Return KIP-211's advice for each group: the longest retention that it asked for, or the broker's, in minutes.

    A commit asked for a retention of its own (`retention_time` of OffsetCommit v2 to v4) if it was stored with an end.
    Brokers before 2.1 store an end with every commit, so one that is exactly the broker's own retention after the
    commit is not counted: whether it was asked for or not, that group is content with what there is.

    Args:
        retention_minutes: offsets.retention.minutes of the brokers that wrote the log.
    Input:
        `COMMITS`.
    Output:
        `RETENTION_AUDIT`, in no order: one row for each group with a commit. Retentions in milliseconds; the
        recommended minutes are the longest one rounded up, and never below `retention_minutes`. The setting for all:
        the greatest of them. Commits of aborted transactions count, as their clients will ask again.
    Compaction hides:
        overrides: the longest one that is left of each key is a lower bound, if a client asks now for this, now for
        that. `n_commits`, `n_overrides` and `first_seen` are lower bounds too.
    """
    override = F.when(F.col("retention_ms") != retention_minutes * MINUTE_MS, F.col("retention_ms"))
    groups = (
        commits.where(~F.col("tombstone"))
        .withColumn("retention_ms", ms_between("commit_ts", "expire_ts"))
        .withColumn("override_ms", override)
        .groupBy("group_id")
        .agg(
            F.max("override_ms").alias("max_override_ms"),
            F.count("override_ms").alias("n_overrides"),
            F.count("*").alias("n_commits"),
            F.min("log_ts").alias("first_seen"),
            F.max("log_ts").alias("last_seen"),
        )
    )
    rounded_up = F.ceil(F.col("max_override_ms") / MINUTE_MS)
    return select_columns(
        RETENTION_AUDIT, groups.withColumn("recommended_minutes", F.greatest(rounded_up, F.lit(retention_minutes)))
    )
