"""Read a log on a local cluster of two workers: ``LOG_DIR``. Print their row counts and paths of kproto as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pyarrow as pa

from kproto.spark import session
from kproto.spark.session import FOR_SMALL_INPUT, JAVA_OPTIONS


def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import os

    import kproto

    rows = sum(len(batch) for batch in batches)
    executor = os.environ.get("SPARK_EXECUTOR_DIRS") or os.getcwd()
    yield pa.RecordBatch.from_pydict({"rows": [rows], "executor": [executor], "kproto": [kproto.__file__]})


if __name__ == "__main__":
    (log_dir,) = sys.argv[1:]
    settings = FOR_SMALL_INPUT | {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": FOR_SMALL_INPUT[JAVA_OPTIONS],
    }
    spark = session("cluster", master="local-cluster[2,1,1024]", config=settings)
    spark.sparkContext.setLogLevel("OFF")
    records = spark.read.format("kproto").option("taskBytes", str(1 << 18)).load(log_dir)
    found = records.mapInArrow(where, "rows long, executor string, kproto string").collect()
    print(json.dumps([row.asDict() for row in found]))
    spark.stop()
