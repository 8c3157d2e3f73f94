"""Which offset does each group have now?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from kproto.arrow.schemas import LATEST
from kproto.spark.jobs.common import KEY, applied
from kproto.spark.schemas import select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEPT = ("committed_offset", "leader_epoch", "metadata", "commit_ts", "expire_ts", "log_partition", "tombstone")


def latest(commits: DataFrame) -> DataFrame:
    """Return the offset that each group has for each partition at the end of the log.

    Input:
        `COMMITS`; the view `latest` of the source does as well: it has at least the last record of each key.
    Output:
        `LATEST`, in no order: one row for each key whose last applied record is no tombstone. What is in a
        transaction without an end, or in an aborted one, does not count. An offset that is over its time, but was
        not swept yet, is still served, and so is in here.
    Compaction hides:
        nothing: it keeps the last record of each key.
    """
    # max_by takes the value at the highest offset also where it is null; several of plain columns cost less than one
    # of a struct.
    last = (
        applied(commits)
        .groupBy(*KEY)
        .agg(*(F.max_by(name, "log_offset").alias(name) for name in _KEPT), F.max("log_offset").alias("log_offset"))
    )
    return select_columns(LATEST, last.where(~F.col("tombstone")))
