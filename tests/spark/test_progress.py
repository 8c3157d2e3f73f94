"""A command says at least every ten seconds what it is doing, wherever its output goes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from pyspark.sql import SparkSession

from kproto.spark import cli, progress
from kproto.spark.arguments import parse
from kproto.spark.progress import Progress, nothing, tasks_of
from tests.fixture_files import golden_log
from tests.spark.scans import Run
from tests.waiting import wait_until

LIMIT_S = 10


class FakeTime:
    """Time that passes when the command waits."""

    def __init__(self, steps: dict[float, Callable[[], None]], end: float) -> None:
        self.now = 0.0
        self._steps = steps
        self._end = end

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        for at in [at for at in self._steps if at <= self.now]:
            self._steps.pop(at)()
        return self.now >= self._end


def test_a_line_at_least_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # of the fixture that makes commands silent
    lines: list[tuple[float, str]] = []

    def begin(what: str | None) -> Callable[[], None]:
        return lambda: command.doing(lambda: what)

    time = FakeTime({20: begin("report: 3 of 12 tasks have ended"), 70: begin(None), 90: begin("writing")}, 100)
    command = Progress(lambda line: lines.append((time.now, line)), wait=time.wait, now=lambda: time.now)
    command.doing(lambda: "starting Spark")
    command.watch()
    assert lines[0] == (8, "8 s: starting Spark")
    assert lines[2] == (24, "24 s: report: 3 of 12 tasks have ended")
    assert [line for _, line in lines[-2:]] == ["64 s: report: 3 of 12 tasks have ended", "96 s: writing"]
    times = [0, *(at for at, _ in lines if at < 70)]
    assert all(later - at <= LIMIT_S for at, later in itertools.pairwise(times))


def test_what_was_done_before_is_asked_for_no_longer() -> None:
    """A session that has been stopped has no tasks."""
    command = Progress(print, wait=lambda _seconds: False)
    calls = []

    def asked() -> str | None:
        calls.append(command)
        command.end()
        return None

    command = Progress(print, wait=lambda _seconds: bool(calls))
    command.doing(asked)
    command.watch()
    command.doing(nothing)
    assert calls == [command]


def test_the_tasks_of_spark_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)

    def wait(numbers: object) -> list[int]:
        with open(pipe) as file:  # runs on a worker
            return [len(file.read())]

    assert tasks_of(spark) is None
    job = Thread(target=lambda: spark.sparkContext.parallelize([1], 1).mapPartitions(wait).collect())
    job.start()
    with open(pipe, "w"):  # the task is running now
        wait_until(lambda: tasks_of(spark) is not None, "Spark to report its task")
        assert tasks_of(spark) == "0 of 1 tasks have ended"
    job.join()
    wait_until(lambda: tasks_of(spark) is None, "Spark to report that it has ended")


def test_a_command_on_spark_says_what_it_does(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.05)
    code, _, err = run("latest", golden_log("4.4.0"))
    assert code == 0
    assert "kproto.spark: 0 s: latest: " in err or " s: latest: " in err


def test_a_command_that_waits_for_records_says_nothing(spark: SparkSession) -> None:
    endless = parse(["tables", "-o", "x", "--from-kafka", "a:1"])
    endless.engine = "spark"
    assert cli._doing(spark, endless)() is None
    once = parse(["tables", "-o", "x", "--from-kafka", "a:1", "--once"])
    assert cli._doing(spark, once)() == "tables: between two stages of Spark"
