"""`transactions` returns the state of each transactional id, on logs of real brokers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kproto.spark import cli
from kproto.spark.engine import EMBEDDED, using
from tests.fixture_files import GOLDEN
from tests.spark.scans import Run

LOGS = GOLDEN / "logs"
SECOND_BATCH_END = 269
"""Bytes of the log of 4.4.0 up to the record that says that the first transaction is ongoing."""


def words(log: Path, *more: str) -> list[str]:
    return ["transactions", str(log), "--format", "jsonl", *more]


def states(capsys: pytest.CaptureFixture[str], log: Path, *more: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    with using(EMBEDDED):
        assert cli.main([*words(log, *more), "--engine", "embedded"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def while_open(tmp_path: Path) -> Path:
    """Return a copy of a broker's log as it was while its first transaction was open."""
    log = shutil.copytree(LOGS / "4.4.0", tmp_path / "log")
    with (log / "__transaction_state-0" / f"{0:020}.log").open("r+b") as file:
        file.truncate(SECOND_BATCH_END)
    return log


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1", "4.4.0"])
def test_the_last_state_of_an_id(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The id committed a transaction, and its next producer aborted one."""
    (row,) = states(capsys, LOGS / release)
    assert (row["transactional_id"], row["state"], row["producer_epoch"]) == ("tx-1", "CompleteAbort", 1)
    assert (row["timeout_ms"], row["partitions"], row["log_offset"]) == (60_000, [], 7)
    assert (row["open_ms"], row["hanging"]) == (None, False)


def test_a_transaction_hangs_after_its_timeout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = while_open(tmp_path)
    for at, open_ms, hanging in (("22:54:29.531", 60_000, False), ("22:54:29.532", 60_001, True)):
        (row,) = states(capsys, log, "--at", f"2026-11-20T{at}")
        assert row["started_ts"] == "2026-11-20T22:53:29.531Z"
        assert (row["state"], row["partitions"]) == ("Ongoing", ["__consumer_offsets-0"])
        assert (row["open_ms"], row["hanging"]) == (open_ms, hanging)


def test_the_default_time_is_the_newest_of_both_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = while_open(tmp_path)
    (row,) = states(capsys, log)
    assert row["open_ms"] == 1_560  # the newest record of the offsets topic is of 22:53:31.091
    shutil.rmtree(log / "__consumer_offsets-0")
    shutil.copytree(LOGS / "2.0.1" / "__consumer_offsets-0", log / "__consumer_offsets-0")
    (row,) = states(capsys, log)
    assert row["open_ms"] == 0  # the offsets topic is older


def test_spark_returns_the_same(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = while_open(tmp_path)
    code, out, _ = run(*words(log))
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == states(capsys, log)


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ("__consumer_offsets-0", "a partition of __consumer_offsets: give a log.dir with __transaction_state"),
        (".", "no segments and no directories like __transaction_state-0; it holds partitions of __consumer_offsets"),
    ],
)
def test_without_these_logs_one_line_says_so(
    part: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(LOGS / "4.4.0" / "__consumer_offsets-0", tmp_path / "__consumer_offsets-0")
    with using(EMBEDDED):
        assert cli.main([*words(tmp_path / part), "--engine", "embedded"]) == 2
    output = capsys.readouterr()
    assert (output.out, line in output.err.splitlines()[-1]) == ("", True)


def test_a_record_that_is_damaged_has_its_offset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = while_open(tmp_path)
    segment = log / "__transaction_state-0" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(data)
    with using(EMBEDDED):
        assert cli.main([*words(log), "--engine", "embedded"]) == 2
    assert "at byte 121, offset 1: BadChecksum" in capsys.readouterr().err
