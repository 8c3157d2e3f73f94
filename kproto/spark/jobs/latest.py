"""The offset that each group has now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.arrow.schemas import LATEST
from kproto.spark.engine import F
from kproto.spark.jobs.common import KEY, applied
from kproto.spark.schemas import select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEPT = ("committed_offset", "leader_epoch", "metadata", "commit_ts", "expire_ts", "log_partition", "tombstone")


def latest(commits: DataFrame) -> DataFrame:
    """Return the offset that each group has for each partition at the end of the log.

    Input:
        `COMMITS`, or rows of it with at least the last counted record of each key (view `candidates`).
    Output:
        `LATEST`, unordered: one row for each key whose last applied record is not a tombstone. Commits in open and
        aborted transactions do not count. An offset after its deadline that the expiration task has not removed yet is
        included, because brokers still return it. An offset that was deleted while a transaction had another one
        pending stays deleted when that transaction ends, as in Kafka; brokers before 4.0 return the pending one after
        their next restart.
    Compaction hides:
        nothing: it keeps the last record of each key.
    """
    # max_by returns the value at the highest offset, also if it is null. Several of them on single columns cost less
    # than one on a struct.
    last = (
        applied(commits)
        .groupBy(*KEY)
        .agg(*(F.max_by(name, "log_offset").alias(name) for name in _KEPT), F.max("log_offset").alias("log_offset"))
    )
    return select_columns(LATEST, last.where(~F.col("tombstone")))
