"""How much each group commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F
from kproto.spark.jobs.common import went_back, with_previous
from kproto.spark.schemas import RATES, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rates(commits: DataFrame, log_batches: DataFrame | None) -> DataFrame:
    """Return the commits of each hour.

    Input:
        `COMMITS` and `LOG_BATCHES`, as for `rewinds`.
    Output:
        `RATES`, unordered: one row for each group, topic and hour (of `log_ts`, UTC) with a commit. A commit is one
        offset of one partition: a request for ten partitions counts as ten. Tombstones and commits in aborted or open
        transactions do not count.
    Compaction hides:
        most commits: a cleaned segment has only the last commit of each key, so both counts are lower bounds.
    """
    rows = with_previous(commits, log_batches)
    by_hour = rows.groupBy("group_id", "topic", F.date_trunc("hour", "log_ts").alias("hour"))
    return select_columns(RATES, by_hour.agg(F.count("*").alias("commits"), F.count_if(went_back()).alias("rewinds")))
