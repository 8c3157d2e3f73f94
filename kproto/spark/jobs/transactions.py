"""The state of each transactional id, and which transactions stay open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.spark.engine import F
from kproto.spark.schemas import TRANSACTIONS, select_columns
from kproto.spark.times import moment_of

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""The states from the first partition of a transaction to the last end marker."""
_KEPT = ("tombstone", "state", "producer_id", "producer_epoch", "timeout_ms", "started_ts", "updated_ts", "partitions")


def newest_ts(states: DataFrame) -> datetime | None:
    """Return the time of the newest record; None: there is none."""
    newest = states.agg(F.unix_micros(F.max("log_ts"))).collect()[0][0]
    return None if newest is None else moment_of(newest)


def transactions(states: DataFrame, *, at: datetime) -> DataFrame:
    """Return the state of each transactional id at the end of the log.

    Args:
        at: the time of the question, with a time zone; not before the end of the log.
    Input:
        `TRANSACTION_STATES`.
    Output:
        `TRANSACTIONS`, unordered: one row for each transactional id that was not removed.
    Compaction hides:
        nothing: it keeps the last record of each transactional id.
    """
    last = states.groupBy("transactional_id").agg(
        *(F.max_by(name, "log_offset").alias(name) for name in _KEPT),
        F.max_by("log_partition", "log_offset").alias("log_partition"),
        F.max("log_offset").alias("log_offset"),
    )
    open_ms = F.when(F.col("state").isin(*OPEN), F.unix_millis(F.lit(at)) - F.unix_millis("started_ts"))
    return select_columns(
        TRANSACTIONS,
        last.where(~F.col("tombstone"))
        .withColumn("open_ms", open_ms)
        .withColumn("hanging", F.coalesce(F.col("open_ms") > F.col("timeout_ms"), F.lit(False))),
    )
