"""Read logs in an object store on a cluster, through spark-submit: ``BIG_LOG SMALL_LOG DIRECTORY COMMANDS``.

Print as JSON the row counts of the executors and their paths of kproto, and the rows of a stream. The first task kills
its executor and its worker after its first rows. Each job writes its rows about the small log to ``DIRECTORY/JOB``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from kproto.spark import session
from kproto.spark.arguments import parse
from kproto.spark.cli import _job


def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    import kproto

    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    rows = len(next(batches))
    if context.partitionId() == 0 and context.attemptNumber() == 0:
        for name in ("deploy.worker.Worker", "CoarseGrainedExecutorBackend"):
            os.kill(ancestor(name), signal.SIGKILL)
        signal.pause()
    rows += sum(len(batch) for batch in batches)
    executor = os.environ["SPARK_EXECUTOR_DIRS"]
    yield pa.RecordBatch.from_pydict({"rows": [rows], "executor": [executor], "kproto": [kproto.__file__]})


def ancestor(name: str) -> int:
    """Return the process that has started this one, directly or not, with a name in its command line."""
    pid = os.getpid()
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if name in Path(f"/proc/{pid}/cmdline").read_text():
            return pid
    raise AssertionError(f"no {name} has started this process")


def main(big: str, small: str, directory: str, commands: str) -> None:
    spark = session("cluster")
    spark.sparkContext.setLogLevel("OFF")
    records = spark.read.format("kproto").option("taskBytes", str(1 << 18)).load(big)
    found = [row.asDict() for row in records.mapInArrow(where, "rows long, executor string, kproto string").collect()]
    streamed: list[int] = []

    def count(rows: DataFrame, _number: int) -> None:
        streamed.append(rows.count())

    stream = spark.readStream.format("kproto").load(small).writeStream.foreachBatch(count).trigger(availableNow=True)
    stream.option("checkpointLocation", f"{directory}/checkpoint").start().awaitTermination()
    for job, *words in json.loads(commands):
        _job(spark, parse([job, *words, small, "--format", "jsonl", "-o", f"{directory}/{job}"]))
    print(json.dumps({"found": found, "streamed": sum(streamed)}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
