"""`check` finds nothing in the logs of real brokers, and in damaged copies of them the rows that break an invariant."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES
from kproto.spark import cli, jobs
from kproto.spark.engine import EMBEDDED, using
from kproto.spark.schemas import CHECK
from tests.fixture_files import FIXTURES, GOLDEN, offsets_log
from tests.spark.duck import assert_rows
from tests.spark.rows import at, batch, commit, frame, group, group_gone

FOLDERS = [path for name in (FIXTURES / "offsets-logs", GOLDEN) for path in sorted(name.glob("*/*")) if path.is_dir()]
LOGS = [path for path in FOLDERS if path.parent.name not in ("kafka-tools", "three-brokers")]
"""All but those with an offset beyond the end, which `tests.spark.test_kafka_tools` checks, and those of clusters."""
SEVERAL = offsets_log("several-partitions", "2.8.2")
Found = list[tuple[object, ...]]


def check(log: Path, capsys: pytest.CaptureFixture[str]) -> Found:
    """Run the command on the embedded engine; return what the rows say. With rows, the exit code is 1."""
    capsys.readouterr()
    with using(EMBEDDED):
        code = cli.main(["check", str(log), "--engine", "embedded", "--format", "jsonl"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == bool(rows)
    names = ("invariant", "group_id", "topic", "partition", "log_partition", "limit", "value")
    return [tuple(row[name] for name in names) for row in rows]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.parent.name}-{log.name}")
def test_logs_of_real_brokers_break_no_invariant(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(log, capsys) == []


def copy_of(log: Path, tmp_path: Path) -> Path:
    return shutil.copytree(log, tmp_path / "log")


def test_an_offset_beyond_the_end_of_the_topic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The group is at 100 of a log without records that ends at 204, in the copy at 50."""
    log = copy_of(offsets_log("no-records", "2.8.2"), tmp_path)
    (log / "emptied-0" / f"{204:020}.log").rename(log / "emptied-0" / f"{50:020}.log")
    assert check(log, capsys) == [("offset beyond the end", "readers", "emptied", 0, 0, 50, 100)]


def test_a_group_in_two_partitions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = copy_of(SEVERAL, tmp_path)
    shutil.copytree(log / "__consumer_offsets-2", log / "__consumer_offsets-0", dirs_exist_ok=True)
    groups = ("group-0", "group-11", "group-4", "group-8")
    assert check(log, capsys) == [("another partition", name, None, None, 2, 0, 2) for name in groups]


def test_offsets_that_no_cleaner_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = copy_of(SEVERAL, tmp_path)
    (log / "orders-0" / f"{35:020}.log").unlink()
    assert check(log, capsys) == [("missing offsets", None, "orders", 0, None, 35, 70)]


def test_offsets_that_the_cleaner_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The broker's checkpoint says that it has compacted the log up to offset 200."""
    log = copy_of(offsets_log("compacted", "2.0.1"), tmp_path)
    checkpoint = log / "cleaner-offset-checkpoint"
    assert check(log, capsys) == []
    checkpoint.write_text("0\n1\n__consumer_offsets 0 100\n")
    (found,) = check(log, capsys)
    assert found[:6] == ("missing offsets", None, "__consumer_offsets", 0, None, 100)
    checkpoint.unlink()  # unknown
    assert check(log, capsys) == []


def test_rows_that_break_invariants(either: SparkSession) -> None:
    commits = [commit(0, "g", "t", 0, 11), commit(1, "g", "t", 1, 12), commit(2, "g", "unknown", 0, 99)]
    commits += [commit(9, "h", "t", 1, 1), commit(4, "h", "t", 1, 1, log_partition=1, seconds=2)]
    groups = [group(3, "g", 5, 1), group(4, "g", 4, 1, seconds=3), group_gone(5, "g"), group(6, "g", 1, 1)]
    batches = [batch("t", 0, 0, 10), batch("t", 0, 12, 5, seconds=4), batch("t", 1, 7, 4), batch("t", 1, 11, 1)]
    batches += [batch("t", 2, 8, 0, size=0), batch("t", 2, 4, 4), batch("t", 2, 0, 4)]  # the newest segment is empty
    cleaned = either.createDataFrame([("t", 1, 9)], "topic string, partition int, cleaned_to bigint")
    tables = frame(either, COMMITS, commits), frame(either, GROUP_METADATA, groups), frame(either, LOG_BATCHES, batches)
    expected = [
        ("generation fell", "g", None, None, 0, 4, at(3), 5, 4),
        ("another partition", "h", None, None, 1, 4, at(2), 0, 1),
    ]
    gap = ("missing offsets", None, "t", 0, None, None, at(4), 10, 12)
    assert_rows(jobs.check(*tables, cleaned), CHECK, [*expected, gap])
    assert_rows(jobs.check(*tables, None), CHECK, expected)
