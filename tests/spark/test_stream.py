"""Streams return each record once, through rolling, cleaning and deletion of segments, open transactions and kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.streaming.query import StreamingQuery

from kproto.records.control import ControlType
from kproto.spark import one_line
from kproto.spark.source.options import read_options
from kproto.spark.source.stream import DataLoss, KprotoStreamReader
from kproto.spark.source.task import Task
from tests.arrow.living_log import LivingLog
from tests.spark.stream_child import start

NAMES = map("stream_{}".format, count())


@pytest.fixture
def log(tmp_path: Path) -> LivingLog:
    return LivingLog(tmp_path / "log" / "__consumer_offsets-7")


class Streamed:
    """A query into memory, and its rows."""

    def __init__(self, spark: SparkSession, path: Path, **options: str) -> None:
        self.spark = spark
        self.name = next(NAMES)
        reader = spark.readStream.format("kproto").options(**options)
        self.query: StreamingQuery = reader.load(str(path)).writeStream.format("memory").queryName(self.name).start()

    def rows(self) -> list[tuple[int, str]]:
        self.query.processAllAvailable()
        return sorted(map(tuple, self.spark.table(self.name).select("log_offset", "txn_state").collect()))

    def offsets(self) -> list[int]:
        return [offset for offset, _ in self.rows()]


@contextmanager
def streamed(spark: SparkSession, path: Path, **options: str) -> Iterator[Streamed]:
    found = Streamed(spark, path, **options)
    try:
        yield found
    finally:
        found.query.stop()


def test_each_record_comes_once_while_segments_change(spark: SparkSession, log: LivingLog) -> None:
    log.filled(2)
    with streamed(spark, log.directory.parent) as stream:
        assert stream.offsets() == list(range(60))
        log.append()
        log.append(size=40)
        assert stream.offsets() == list(range(70))
        log.truncate(-40)
        log.append()
        log.roll()
        log.append()
        assert stream.offsets() == list(range(90))
        log.clean(0, 30)
        log.append()
        assert stream.offsets() == list(range(100))
        log.roll()
        log.append()
        log.path(0).unlink()  # the stream has read all of it
        assert stream.offsets() == list(range(110))


def test_a_row_waits_for_the_end_of_its_transaction(spark: SparkSession, log: LivingLog) -> None:
    log.append()
    log.append(producer_id=1)
    log.append()
    with (
        streamed(spark, log.directory.parent) as stream,
        streamed(spark, log.directory.parent, openTransactions="emit") as emitting,
    ):
        assert stream.offsets() == list(range(10))
        assert [state for _, state in emitting.rows()] == ["none"] * 10 + ["pending"] * 10 + ["none"] * 10
        log.end(1, ControlType.ABORT)
        states = ["none"] * 10 + ["aborted"] * 10 + ["none"] * 10
        assert stream.rows() == list(zip(range(30), states, strict=True))
        assert len(emitting.rows()) == 30


def test_micro_batches_have_the_size_of_the_option(spark: SparkSession, log: LivingLog) -> None:
    log.filled(1, batches=10)
    with streamed(
        spark, log.directory.parent, maxOffsetsPerTrigger="30", startingOffsets=json.dumps({"7": 15})
    ) as stream:
        assert stream.offsets() == list(range(15, 100))
        assert [progress.numInputRows for progress in stream.query.recentProgress if progress.numInputRows] == [
            30,
            30,
            25,
        ]


def test_a_micro_batch_of_fewer_offsets_than_partitions(tmp_path: Path) -> None:
    for number in range(4):
        LivingLog(tmp_path / f"__consumer_offsets-{number}").filled(1, batches=number)
    reader = KprotoStreamReader(read_options({"path": str(tmp_path)}))
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadMaxRows(2)) == {"0": 0, "1": 0, "2": 1, "3": 1}
    assert reader.latestOffset(start, ReadMaxRows(30)) == {"0": 0, "1": 5, "2": 10, "3": 15}


def test_records_deleted_unread_end_the_stream_unless_allowed(spark: SparkSession, log: LivingLog) -> None:
    log.filled(3)
    first = json.dumps({"7": 10})
    log.path(0).unlink()
    with streamed(spark, log.directory.parent, startingOffsets=first) as stream:
        with pytest.raises(Exception, match="begins at offset 30, but was read up to 10 only") as caught:
            stream.offsets()
        assert "failOnDataLoss" in (one_line(caught.value) or "")
    with streamed(spark, log.directory.parent, startingOffsets=first, failOnDataLoss="false") as stream:
        assert stream.offsets() == list(range(30, 90))


def test_a_log_that_became_shorter_ends_the_stream_unless_allowed(spark: SparkSession, log: LivingLog) -> None:
    log.filled(2)
    path = log.directory.parent
    first = json.dumps({"7": 60})
    with streamed(spark, path) as stream, streamed(spark, path, failOnDataLoss="false") as going_on:
        assert stream.offsets() == going_on.offsets() == list(range(60))
        log.path(30).unlink()
        log.newest, log.next_offset = 0, 30
        for running in (stream, Streamed(spark, path, startingOffsets=first)):
            with pytest.raises(Exception, match="partition 7 ends at offset 30, but was read up to 60"):
                running.offsets()
        assert going_on.offsets() == list(range(60))
        log.append()
        assert going_on.offsets() == sorted([*range(60), *range(30, 40)])


def test_a_stream_can_start_behind_an_open_transaction(spark: SparkSession, log: LivingLog) -> None:
    log.append(producer_id=1)
    log.append()
    log.append()
    reader = spark.readStream.format("kproto").option("startingOffsets", json.dumps({"7": 20}))
    writer = reader.load(str(log.directory.parent)).writeStream.format("memory").queryName(next(NAMES))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert [row.log_offset for row in spark.table(query.name).collect()] == list(range(20, 30))


def test_trigger_available_now_reads_nothing_before_the_position(log: LivingLog) -> None:
    log.filled(2)
    log.path(0).write_bytes(bytes(100))  # would not be a batch
    reader = KprotoStreamReader(read_options({"path": str(log.directory.parent)}))
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset({"7": 40}, ReadAllAvailable()) == {"7": 60}
    log.append()
    assert reader.latestOffset({"7": 60}, ReadAllAvailable()) == {"7": 60}


def test_a_batch_whose_partition_is_gone_ends_the_stream_unless_allowed(log: LivingLog) -> None:
    LivingLog(log.directory.with_name("__consumer_offsets-8")).append()
    log.directory.rename(log.directory.with_name("unmounted"))
    options = {"path": str(log.directory.parent)}
    start, end = {"7": 0, "8": 0}, {"7": 30, "8": 10}
    with pytest.raises(DataLoss, match="partition 7 is not there, but was to be read from 0 to 30"):
        KprotoStreamReader(read_options(options)).partitions(start, end)
    (task,) = KprotoStreamReader(read_options(options | {"failOnDataLoss": "false"})).partitions(start, end)
    assert isinstance(task, Task)
    assert [one.partition.number for one in task.ranges] == [8]


def test_a_stream_can_start_at_the_end(spark: SparkSession, log: LivingLog) -> None:
    log.filled(1)
    with streamed(spark, log.directory.parent, startingOffsets="latest") as stream:
        stream.query.processAllAvailable()
        log.append()
        assert stream.offsets() == list(range(30, 40))


@pytest.mark.parametrize(
    ("options", "reason"), [({"view": "latest"}, "needs a whole log"), ({"endingOffsets": "{}"}, "endingOffsets")]
)
def test_options_that_streams_do_not_have_are_refused(
    spark: SparkSession, log: LivingLog, options: dict[str, str], reason: str
) -> None:
    with streamed(spark, log.directory.parent, **options) as stream, pytest.raises(Exception, match=reason):
        stream.offsets()


QUERIES, HITS_WANTED, KILLS_MAX = 3, 2, 8
ADVANCE_MAX_S = 300


@pytest.mark.slow  # starts and kills Spark several times
def test_killed_queries_lose_and_repeat_nothing(spark: SparkSession, log: LivingLog, tmp_path: Path) -> None:
    """SIGKILL ends the whole process group while batches are planned and not committed; hits are counted per query.

    Between the kills, segments are rolled and cleaned.
    """
    hits = 0
    for _ in range(KILLS_MAX):
        hits += killed_queries(log, tmp_path)
        bases = [segment.base_offset for segment in log.partition.segments()]
        log.roll()
        if len(bases) > 2:
            log.clean(*bases[:2])
        if hits >= HITS_WANTED:
            break
    assert hits >= HITS_WANTED
    log.append()
    for number in range(QUERIES):
        start(spark, str(log.directory.parent), str(tmp_path), number, until_the_end=True).awaitTermination()
        rows = spark.read.parquet(str(tmp_path / f"rows-{number}"))
        found = sorted(row.log_offset for row in rows.select("log_offset").collect())
        assert found == list(range(log.next_offset))


def killed_queries(log: LivingLog, work_dir: Path) -> int:
    """Run the queries while the log grows and kill them; return how many had a batch planned but not committed."""
    command = [sys.executable, "-m", "tests.spark.stream_child", str(log.directory.parent), str(work_dir), str(QUERIES)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with (work_dir / "child.txt").open("ab") as output:
        child = subprocess.Popen(command, start_new_session=True, stdout=output, stderr=output, env=environment)
    before = [newest(work_dir, number, "commits") for number in range(QUERIES)]
    try:
        deadline = time.monotonic() + ADVANCE_MAX_S
        while True:
            assert child.poll() is None, (work_dir / "child.txt").read_text()[-3000:]
            assert time.monotonic() < deadline, "the queries do not advance"
            log.append()
            time.sleep(0.02)  # the log grows while the queries run
            have_run = all(newest(work_dir, n, "commits") > before[n] for n in range(QUERIES))
            if have_run and len(uncommitted(work_dir)) >= QUERIES - 1:
                break
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return len(uncommitted(work_dir))


def uncommitted(work_dir: Path) -> list[int]:
    """Return the queries whose newest planned batch is not committed."""
    return [n for n in range(QUERIES) if newest(work_dir, n, "offsets") > newest(work_dir, n, "commits")]


def newest(work_dir: Path, number: int, what: str) -> int:
    """Return the number of the newest batch in a checkpoint's log of one kind; -1: none."""
    directory = work_dir / f"checkpoint-{number}" / what
    names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)
