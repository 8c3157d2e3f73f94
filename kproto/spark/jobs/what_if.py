"""What would be lost under another offsets.retention.minutes?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from kproto.spark.jobs.common import KEY
from kproto.spark.jobs.deadlines import NEWEST, deadlines
from kproto.spark.schemas import WHAT_IF, select_columns

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame


def what_if(
    commits: DataFrame,
    group_metadata: DataFrame,
    *,
    current_minutes: int,
    retention_minutes: int,
    at: datetime,
    release: str = NEWEST,
) -> DataFrame:
    """Return what each group has lost at one moment under the current retention and under another.

    Args:
        current_minutes: offsets.retention.minutes as it is.
        retention_minutes: as it might be.
        at: the moment (with a time zone); nobody commits, joins or leaves up to then.
        release: the Kafka release that sweeps.
    Input:
        `COMMITS` and `GROUP_METADATA`.
    Output:
        `WHAT_IF`, in no order: one row for each group that has an offset in the log. Offsets with an end of their own
        are lost at that under any retention.
    Compaction hides:
        nothing, but what was lost already: it is not in the log, or under a tombstone.
    """
    now = deadlines(commits, group_metadata, retention_minutes=current_minutes, release=release)
    other = deadlines(commits, group_metadata, retention_minutes=retention_minutes, release=release)
    both = now.select(*KEY, "deadline").join(other.select(*KEY, F.col("deadline").alias("other_deadline")), list(KEY))
    return select_columns(
        WHAT_IF,
        both.groupBy("group_id").agg(
            F.count("*").alias("offsets"),
            F.min("deadline").alias("expires_ts"),
            F.min("other_deadline").alias("what_if_expires_ts"),
            F.count_if(F.col("deadline") <= F.lit(at)).alias("lost"),
            F.count_if(F.col("other_deadline") <= F.lit(at)).alias("what_if_lost"),
        ),
    )
