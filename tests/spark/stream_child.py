"""Run streaming queries over one log until the parent process kills this one: ``LOG_DIR WORK_DIR QUERY_COUNT``.

Query N has its checkpoint in ``WORK_DIR/checkpoint-N`` and its Parquet in ``WORK_DIR/rows-N``.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kproto.spark import session
from tests.spark.settings import LOCAL


def start(spark: SparkSession, log_dir: str, work_dir: str, number: int, *, until_the_end: bool) -> StreamingQuery:
    rows = spark.readStream.format("kproto").load(log_dir)
    writer = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", f"{work_dir}/checkpoint-{number}")
        .option("path", f"{work_dir}/rows-{number}")
    )
    return (writer.trigger(availableNow=True) if until_the_end else writer).start()


if __name__ == "__main__":
    log_dir, work_dir, count = sys.argv[1:]
    spark = session("to be killed", master="local[2]", config=LOCAL)
    spark.sparkContext.setLogLevel("OFF")
    for number in range(int(count)):
        start(spark, log_dir, work_dir, number, until_the_end=False)
    spark.streams.awaitAnyTermination()
