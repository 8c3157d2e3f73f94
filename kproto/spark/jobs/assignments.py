"""The owner of each partition in each group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F, Window
from kproto.spark.schemas import ASSIGNMENTS, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def assignments(records: DataFrame, topic_names: DataFrame) -> DataFrame:
    """Return the partitions that members own at the end of the log.

    Args:
        topic_names: rows with topic_id and name; records of KIP-848 and share groups have ids only, those of
            streams groups neither.
    Input:
        `ASSIGNMENT_RECORDS`.
    Output:
        `ASSIGNMENTS`, unordered: one row for each partition or task and owner. A member owns a partition that it has
        to give up until it does. Members of a share group may share a partition. Of a classic group, the record at the
        end of a rebalance counts: members that left since then without a rebalance are included.
    Compaction hides:
        nothing: it keeps the last record of each group and member.
    """
    of_subject = Window.partitionBy("group_id", "kind", "subject")
    of_partition = Window.partitionBy("group_id", "kind", "topic", "topic_id", "subtopology", "task", "partition")
    newest = records.withColumn("newest", F.max("log_offset").over(of_subject))
    return select_columns(
        ASSIGNMENTS,
        newest.where((F.col("log_offset") == F.col("newest")) & F.col("partition").isNotNull())
        .withColumn("owners", F.count("*").over(of_partition))
        .join(F.broadcast(topic_names), "topic_id", "left")
        .withColumn("topic", F.coalesce("topic", "name"))
        .withColumn("since_ts", F.col("log_ts")),
    )
