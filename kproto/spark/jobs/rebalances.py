"""The events of groups: how often they rebalance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F, Window
from kproto.spark.jobs.common import ms_between
from kproto.spark.schemas import REBALANCES, select_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def rebalances(group_metadata: DataFrame) -> DataFrame:
    """Return the events of each group.

    A broker writes the record of a classic group at the end of a rebalance, after the last member left, after the
    replacement of a static member, and at the removal of the group; that of a group of another kind (KIP-848, share,
    streams) whenever its epoch rises. Joins, leaves and heartbeats of classic groups are not in the log. The members of
    the other groups are counted by the records about them before that about the group.

    Input:
        `GROUP_METADATA`.
    Output:
        `REBALANCES`, unordered: one row for each record about a group; records about one member have none.
    Compaction hides:
        all but the last event of a group in a cleaned segment: counts are lower bounds, and `seconds_since` may cover
        several rebalances. Members of groups that are not classic may have left earlier than the events show.
    """
    in_order = Window.partitionBy("group_id").orderBy("log_offset")

    def before(name: str) -> Column:
        return F.lag(name).over(in_order)

    gone = F.col("tombstone")
    event = (
        F.when(gone, "removed")
        .when(F.coalesce(before("tombstone"), F.lit(True)), "formed")
        .when(F.col("member_count") == 0, "emptied")
        .when(F.col("generation") == before("generation"), "static member replaced")
        .otherwise("rebalanced")
    )
    about_groups = _with_member_counts(group_metadata).where(F.col("member_id").isNull())
    return select_columns(
        REBALANCES,
        about_groups.withColumn("event", event)
        .withColumn("members", F.when(~gone, F.col("member_count")))
        .withColumn("members_before", before("member_count"))
        .withColumn("leader_changed", F.col("leader") != before("leader"))
        .withColumn("before_ts", before("log_ts"))
        .withColumn("seconds_since", ms_between("before_ts", "log_ts") / 1000)
        .withColumn("ts", F.col("log_ts")),
    )


def _with_member_counts(group_metadata: DataFrame) -> DataFrame:
    """Return the rows with a `member_count` for groups that are not classic too."""
    in_order = Window.partitionBy("group_id").orderBy("log_offset")
    of_member = Window.partitionBy("group_id", "member_id").orderBy("log_offset")
    is_there = (~F.col("tombstone")).cast("int")
    change = F.when(F.col("member_id").isNotNull(), is_there - F.coalesce(F.lag(is_there).over(of_member), F.lit(0)))
    counted = F.coalesce(F.sum("change").over(in_order), F.lit(0))
    rows = group_metadata.withColumn("change", change)
    return rows.withColumn("member_count", F.when(F.col("kind") != "classic", counted).otherwise(F.col("member_count")))
