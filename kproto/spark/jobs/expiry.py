"""The offsets that groups are about to lose, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F, Window
from kproto.spark.jobs.deadlines import NEWEST, deadlines
from kproto.spark.schemas import GROUP_EXPIRY, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def expiry(
    commits: DataFrame, group_metadata: DataFrame, *, retention_minutes: int, kafka_version: str = NEWEST
) -> DataFrame:
    """Return the offsets that expire at each time if no client commits, joins or leaves any more.

    Args:
        retention_minutes: offsets.retention.minutes of the brokers from now on.
        kafka_version: the version of the brokers, which decides the rules (`kproto.spark.jobs.deadlines`).
    Input:
        `COMMITS` and `GROUP_METADATA`.
    Output:
        `GROUP_EXPIRY`, unordered: one row for each group and deadline, and one without a deadline for the offsets that
        the group keeps. Offsets stay until the first expiration task at or after the deadline, so up to
        offsets.retention.check.interval.ms longer; a deadline may be in the past. A group whose last record has
        members counts as a group with members: after the crash of a broker, they have a session timeout to come back.
    Compaction hides:
        nothing: deadlines depend on the last record of each key only.
    """
    offsets = deadlines(commits, group_metadata, retention_minutes=retention_minutes, kafka_version=kafka_version)
    # Offsets with an expire timestamp may have the same deadline as the others: one row then, with the group's basis.
    steps = offsets.groupBy("group_id", "deadline").agg(
        F.max("became_empty_ts").alias("became_empty_ts"),
        F.count("*").alias("offsets_lost"),
        F.min("basis").alias("basis"),
    )
    by_time = Window.partitionBy("group_id").orderBy(F.col("deadline").asc_nulls_last())
    after = by_time.rowsBetween(1, Window.unboundedFollowing)
    left = F.coalesce(F.sum("offsets_lost").over(after), F.lit(0))
    never = F.col("deadline").isNull()
    return select_columns(
        GROUP_EXPIRY,
        steps.withColumn("offsets_left", left)
        .withColumn("offsets_left", F.when(never, F.col("offsets_lost")).otherwise(F.col("offsets_left")))
        .withColumn("offsets_lost", F.when(never, F.lit(0)).otherwise(F.col("offsets_lost")))
        .withColumnRenamed("deadline", "expires_ts"),
    )
