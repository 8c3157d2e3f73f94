"""One Spark session for all tests of a process, because starting one takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import TIMEOUT_MAX

import pytest
from pyspark.sql import SparkSession

from kproto.spark import cli, progress, session
from kproto.spark.engine import EMBEDDED, SPARK, using
from kproto.spark.start import start
from tests.requirements import need_java
from tests.spark import class_archive
from tests.spark.engines import session_of
from tests.spark.scans import Command, Run
from tests.spark.settings import LOCAL

HERE = str(Path(__file__).parent)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder: ``pytest -m spark``."""
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def archive_of_classes() -> None:
    """Have all sessions of these tests, and of the programs that they run, start in half of the time."""
    class_archive.use()


@pytest.fixture(autouse=True)
def never_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands say no progress, also on a busy machine: tests compare what they print."""
    monkeypatch.setattr(progress, "EVERY_S", TIMEOUT_MAX)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    need_java()
    # Two partitions, so that rows are shuffled.
    started = session("kproto tests", master="local[2]", config=LOCAL | {"spark.sql.shuffle.partitions": "2"})
    started.sparkContext.setLogLevel("OFF")  # tests cause errors and check what Python receives
    yield started
    started.stop()


@pytest.fixture(params=[SPARK, EMBEDDED])
def either(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Return a session of each engine: what one returns, the other has to return too."""
    with session_of(request.param, request) as started:
        yield started


@pytest.fixture
def embedded_session(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Return a session of the embedded engine, for tests of what both engines get from the same code."""
    with session_of(EMBEDDED, request) as started:
        yield started


@pytest.fixture
def run(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Run:
    """Return a function that runs commands on Spark in this process, in the session of all tests, which none stops."""
    monkeypatch.setattr(cli, "start", lambda options: spark if options.engine == SPARK else start(options))
    monkeypatch.setattr(type(spark), "stop", lambda _self: None)
    return Run(spark, capsys, tmp_path / "reads.jsonl")


@pytest.fixture
def run_embedded(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function like `run` that runs commands on the embedded engine."""

    def command(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with using(EMBEDDED):  # the command chooses it for its process
            code = cli.main([*map(str, words), "--engine", "embedded"])
        output = capsys.readouterr()
        return code, output.out, output.err

    return command
