"""Who went backwards?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from kproto.spark.jobs.common import went_back, with_previous
from kproto.spark.schemas import REWINDS, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rewinds(commits: DataFrame) -> DataFrame:
    """Return every commit of an offset below the one before it.

    A group that lost its offsets and began anew went backwards too: `after_loss` tells these apart.

    Input:
        `COMMITS`.
    Output:
        `REWINDS`, in no order; offsets of the topic, `ts` as the record's timestamp.
    Compaction hides:
        rewinds in cleaned segments: there the commit before is gone. What is found did happen, but `from_offset` may
        be lower than the offset that the group really came from.
    """
    back = with_previous(commits).where(went_back())
    return select_columns(
        REWINDS,
        back.withColumn("ts", F.col("log_ts"))
        .withColumn("from_offset", F.col("previous_offset"))
        .withColumn("to_offset", F.col("committed_offset"))
        .withColumn("rewound", F.col("previous_offset") - F.col("committed_offset")),
    )
