"""Compute when each offset expires: the rules of KIP-211 and those before it, applied to the records of a log.

Theory of operation. The deadline of an offset is the first time at which the expiration task removes it. Since Kafka
2.1:

- an offset has no deadline while members of its group keep it: members of a classic group keep the offsets of all
  topics (since 2.4, members of a consumer group only those of the topics that they subscribe to), members of a KIP-848
  group those of the topics that they subscribe to; since 4.0, neither while a transaction has a pending offset for the
  same partition;
- else, if the offset was stored with an expire timestamp, that is its deadline;
- else, if the group had members and the log has the time at which it became Empty, the deadline is that time plus the
  retention;
- else it is the commit time plus the retention: in a group that never had members, in a KIP-848 group, and in a group
  whose time a broker before 2.1 did not store.

Before 2.1, the deadline is the expire timestamp of the offset plus one millisecond, independent of the group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F
from kproto.spark.jobs.common import KEY
from kproto.spark.jobs.latest import latest
from kproto.spark.times import LAST

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NEWEST = "4.4"
BY_SETTING = ("group_metadata", "last_commit")
"""The bases of deadlines that depend on offsets.retention.minutes."""
NEW_COORDINATOR = (4, 0)
"""The version whose brokers have the group coordinator of KIP-848 by default."""


def deadlines(
    commits: DataFrame, group_metadata: DataFrame, *, retention_minutes: int, kafka_version: str = NEWEST
) -> DataFrame:
    """Return `LATEST` with `became_empty_ts` and `deadline` (timestamps) and `basis` (string) as in `GROUP_EXPIRY`.

    Args:
        retention_minutes: offsets.retention.minutes.
        kafka_version: the version of the brokers, which decides the rules.
    """
    rows = bases(commits, group_metadata, kafka_version=kafka_version)
    return rows.withColumn("deadline", deadline(retention_minutes)).drop("base", "grace", "own_basis")


def bases(commits: DataFrame, group_metadata: DataFrame, *, kafka_version: str = NEWEST) -> DataFrame:
    """Return what `deadlines` returns, with the columns that `deadline` needs instead of the deadline.

    `own_basis` is the basis under KIP-211's rule for requested retentions: brokers ignore them.
    """
    offsets = latest(commits).join(_pending(commits), list(KEY), "left")
    joined = offsets.join(group_states(group_metadata), "group_id", "left")
    version = _version(kafka_version)
    if version < (2, 1):
        own_basis, base = F.lit("last_commit"), F.col("commit_ts")
        grace = F.expr("interval 1 millisecond")
    else:
        own_basis = _own_basis(subscription_decides=version >= (2, 4), pending_keeps=version >= NEW_COORDINATOR)
        base = F.when(F.col("own_basis") == "group_metadata", F.col("became_empty_ts")).otherwise(F.col("commit_ts"))
        grace = F.expr("interval 0 millisecond")
    is_override = F.col("expire_ts").isNotNull() & F.col("own_basis").isin(*BY_SETTING)
    return (
        joined.withColumn("own_basis", own_basis)
        .withColumn("basis", F.when(is_override, "override").otherwise(F.col("own_basis")))
        .withColumn("base", base)
        .withColumn("grace", grace)
    )


def deadline(retention_minutes: int, *, overrides: bool = True) -> Column:
    """Return a column over `bases`: the deadline under an offsets.retention.minutes, at most `LAST`; null: none.

    Args:
        overrides: whether an expire timestamp of its own is the deadline of an offset.
    """
    basis = F.col("basis" if overrides else "own_basis")
    retention = F.make_interval(mins=F.lit(retention_minutes))
    end = F.when(basis == "override", F.col("expire_ts") + F.col("grace"))
    end = end.when(basis.isin(*BY_SETTING), F.col("base") + retention + F.col("grace"))
    return F.when(end > F.lit(LAST), F.lit(LAST)).otherwise(end)


def group_states(group_metadata: DataFrame) -> DataFrame:
    """Return the last state in the log of each group that has group records and was not removed.

    Columns: group_id, `kind`, `protocol_type` (null: it never had members), `has_members` (boolean),
    `became_empty_ts` (timestamp; null: it has members, never had any, or the time is not stored) and
    `subscribed_topics` (null: unknown).
    """
    about_groups = group_metadata.where(F.col("member_id").isNull())
    names = ("tombstone", "protocol_type", "state_ts", "member_count", "subscribed_topics")
    last = about_groups.groupBy("group_id", "kind").agg(*(F.max_by(name, "log_offset").alias(name) for name in names))
    living = last.where(~F.col("tombstone")).drop("tombstone")
    # A converted group has records of both kinds; the tombstone of the old kind is written with the new record.
    living = living.groupBy("group_id").agg(
        F.max("kind").alias("kind"), *(F.max_by(name, "kind").alias(name) for name in names if name != "tombstone")
    )
    classic = F.col("kind") == "classic"
    members = living.join(_members(group_metadata), "group_id", "left")
    has_members = F.when(classic, F.col("member_count") > 0).otherwise(F.col("topics_of_members").isNotNull())
    had_members = F.col("protocol_type") != ""
    return members.select(
        "group_id",
        "kind",
        F.when(had_members, F.col("protocol_type")).alias("protocol_type"),
        has_members.alias("has_members"),
        F.when(classic & had_members & ~has_members, F.col("state_ts")).alias("became_empty_ts"),
        F.when(classic, F.col("subscribed_topics")).otherwise(F.col("topics_of_members")).alias("subscribed_topics"),
    )


def _members(group_metadata: DataFrame) -> DataFrame:
    """Return each KIP-848 group with members, and `topics_of_members`: the topics that any member subscribes to."""
    about_members = group_metadata.where(F.col("member_id").isNotNull())
    last = about_members.groupBy("group_id", "member_id").agg(
        F.max_by("tombstone", "log_offset").alias("tombstone"),
        F.max_by("subscribed_topics", "log_offset").alias("subscribed_topics"),
    )
    return (
        last.where(~F.col("tombstone"))
        .groupBy("group_id")
        .agg(F.array_distinct(F.flatten(F.collect_list("subscribed_topics"))).alias("topics_of_members"))
    )


def _pending(commits: DataFrame) -> DataFrame:
    pending = commits.where(F.col("txn_state") == "pending")
    return pending.select(*KEY).distinct().withColumn("is_pending", F.lit(True))


def _own_basis(*, subscription_decides: bool, pending_keeps: bool) -> Column:
    subscribed = F.coalesce(F.array_contains("subscribed_topics", F.col("topic")), F.lit(True))
    by_subscription = F.col("kind") == "consumer"
    if subscription_decides:
        by_subscription |= F.col("protocol_type") == "consumer"
    kept = F.col("has_members") & F.when(by_subscription, subscribed).otherwise(F.lit(True))
    return (
        F.when(F.col("is_pending") & F.lit(pending_keeps), "pending")
        .when(kept, "members")
        .when(F.col("became_empty_ts").isNotNull(), "group_metadata")
        .otherwise("last_commit")
    )


def _version(kafka_version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version: (2, 1) for 2.1.1."""
    return tuple(int(part) for part in kafka_version.split(".")[:2])
