"""The commits that went backwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F
from kproto.spark.jobs.common import went_back, with_previous
from kproto.spark.schemas import REWINDS, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rewinds(commits: DataFrame, log_batches: DataFrame | None) -> DataFrame:
    """Return every commit of an offset below the one before it.

    A group that lost its offsets and started again went backwards too; `after_loss` marks these. Commits that no broker
    ever returned do not count: those in aborted and open transactions, and those that another commit replaced before
    their transaction ended.

    Input:
        `COMMITS` and `LOG_BATCHES`, whose end markers say when transactional commits became visible; None: there are no
        transactions.
    Output:
        `REWINDS`, unordered; offsets are those of the topic, `ts` is the timestamp of the record.
    Compaction hides:
        rewinds in cleaned segments, where the commit before is gone. Each row did happen, but `from_offset` may be
        lower than the offset from which the group really went back.
    """
    back = with_previous(commits, log_batches).where(went_back())
    return select_columns(
        REWINDS,
        back.withColumn("ts", F.col("log_ts"))
        .withColumn("from_offset", F.col("previous_offset"))
        .withColumn("to_offset", F.col("committed_offset"))
        .withColumn("rewound", F.col("previous_offset") - F.col("committed_offset")),
    )
