"""The replicas of each partition in the log.dirs of many brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.logs.replicas import compare, find_log_dirs, find_replicas
from kproto.spark.schemas import REPLICAS, ddl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

ORDER = ("cluster_id", "topic", "partition", "-log_end", "broker_id", "directory")
"""The order of the rows."""


def replicas(spark: SparkSession, paths: Iterable[str]) -> DataFrame:
    """Return the replicas of each partition and how each compares with the most complete one, which jobs read.

    Args:
        paths: log.dirs, or directories of partitions.
    Output:
        `REPLICAS`, unordered.

    Raises:
        CorruptLog: the end of a log is damaged.
        NoLog: a path holds no partitions.
        OSError: a path cannot be read.
    """
    rows = []
    for cluster_id, of_cluster in find_log_dirs(paths).items():
        for found in find_replicas(of_cluster):
            for one in compare(found):
                replica = one.replica
                rows.append(
                    (
                        cluster_id,
                        *replica.partition[:2],
                        replica.log_dir.broker_id,
                        one.state,
                        replica is found[0],
                        replica.start_offset,
                        replica.log_end,
                        max(replica.epochs, default=None),
                        one.behind,
                        one.diverged_at,
                        replica.size,
                        str(replica.partition.path),
                    )
                )
    return spark.createDataFrame(rows, ddl(REPLICAS))
