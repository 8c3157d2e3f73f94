"""Read a log on a cluster, through spark-submit: ``LOG_DIR JOB...``.

Print the row counts of the executors and their paths of kproto as a line of JSON, then what a job prints.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import kproto
from kproto.spark import session


def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import kproto

    rows = sum(len(batch) for batch in batches)
    executor = os.environ.get("SPARK_EXECUTOR_DIRS") or os.getcwd()
    yield pa.RecordBatch.from_pydict({"rows": [rows], "executor": [executor], "kproto": [kproto.__file__]})


if __name__ == "__main__":
    log_dir, *job = sys.argv[1:]
    spark = session("cluster")
    spark.sparkContext.setLogLevel("OFF")
    records = spark.read.format("kproto").option("taskBytes", str(1 << 18)).load(log_dir)
    found = records.mapInArrow(where, "rows long, executor string, kproto string").collect()
    print(json.dumps([row.asDict() for row in found]), flush=True)
    script = Path(kproto.__file__).parent / "spark" / "__main__.py"
    sys.argv = [str(script), *job]
    runpy.run_path(str(script), run_name="__main__")
