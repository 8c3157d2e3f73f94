"""Read logs in an object store on a cluster, through spark-submit: a driver that is killed, and the one after it.

``first BIG_LOG SMALL_LOG DIRECTORY LIMIT``: print as JSON the row counts of the executors and their paths of kproto.
The first task kills its executor and its worker after its first rows. Then read a stream in micro-batches of some
offsets, and kill this driver, Java and Python, at the end of the second one, before Spark has stored that it has ended.

``second SMALL_LOG DIRECTORY LIMIT HALF TABLES COMMANDS``: continue the stream. Each job writes its rows about the small
log to ``DIRECTORY/JOB``; ``tables`` writes the first half of it, then all of it, with compaction, and then all again.
Print the lines of these three runs as JSON.

Micro-batches append their number and their offsets as JSON to ``DIRECTORY/streamed``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kproto.spark import session
from kproto.spark.arguments import parse
from kproto.spark.cli import _job
from kproto.spark.inputs import open_input
from kproto.spark.tables_command import write_tables


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


def stream(spark: SparkSession, small: str, directory: str, limit: str, dies_in: int | None = None) -> None:
    """Read the log up to its end."""

    def note(rows: DataFrame, number: int) -> None:
        offsets = sorted(row["log_offset"] for row in rows.select("log_offset").collect())
        with Path(directory, "streamed").open("a") as file:
            file.write(json.dumps([number, offsets]) + "\n")
        if number == dies_in:
            for process in (os.getppid(), os.getpid()):
                os.kill(process, signal.SIGKILL)

    records = spark.readStream.format("kproto").option("maxOffsetsPerTrigger", limit).load(small)
    writer = records.writeStream.foreachBatch(note).trigger(availableNow=True)
    writer.option("checkpointLocation", f"{directory}/checkpoint").start().awaitTermination()


def first(spark: SparkSession, big: str, small: str, directory: str, limit: str) -> None:
    records = spark.read.format("kproto").option("taskBytes", str(1 << 18)).load(big)
    found = [row.asDict() for row in records.mapInArrow(where, "rows long, executor string, kproto string").collect()]
    print(json.dumps(found), flush=True)
    stream(spark, small, directory, limit, dies_in=1)


def second(spark: SparkSession, small: str, directory: str, limit: str, half: str, tables: str, commands: str) -> None:
    stream(spark, small, directory, limit)
    for job, *words in json.loads(commands):
        _job(spark, parse([job, *words, small, "--format", "jsonl", "-o", f"{directory}/{job}"]))
    lines = [written(spark, tables, log, *words) for log, *words in ([half], [small, "--compact"], [small])]
    print(json.dumps(lines), flush=True)


def written(spark: SparkSession, tables: str, log: str, *words: str) -> list[str]:
    """Write a log to tables; return the lines that the command prints."""
    lines: list[str] = []
    write_tables(spark, parse(["tables", log, "-o", tables, *words]), lambda: open_input(spark, log), lines.append)
    return lines


if __name__ == "__main__":
    name, *words = sys.argv[1:]
    spark = session("cluster")
    spark.sparkContext.setLogLevel("OFF")
    if name == "first":
        first(spark, *words)
    else:
        second(spark, *words)
    spark.stop()
