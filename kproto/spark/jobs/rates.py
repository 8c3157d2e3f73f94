"""Who commits how much?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from kproto.spark.jobs.common import went_back, with_previous
from kproto.spark.schemas import RATES, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rates(commits: DataFrame) -> DataFrame:
    """Return the commits of each hour.

    Input:
        `COMMITS`.
    Output:
        `RATES`, in no order: one row for each group, topic and hour (of `log_ts`, UTC) with a commit. A commit is one
        offset of one partition: a request for ten partitions counts as ten. Without tombstones, and without commits
        of transactions that were aborted or have no end.
    Compaction hides:
        most of it: of a cleaned segment only the last commit of each key is left, so both counts are lower bounds.
    """
    by_hour = with_previous(commits).groupBy("group_id", "topic", F.date_trunc("hour", "log_ts").alias("hour"))
    return select_columns(RATES, by_hour.agg(F.count("*").alias("commits"), F.count_if(went_back()).alias("rewinds")))
