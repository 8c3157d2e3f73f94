"""The jobs return the rows that a computation in plain Python, or by hand, returns."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES
from kproto.spark import jobs
from kproto.spark.jobs.versions import read_reports
from kproto.spark.schemas import HOT_PARTITIONS, LAG, REBALANCES, VERSIONS
from tests.fixture_files import FIXTURES
from tests.spark.duck import assert_rows
from tests.spark.rows import Log, Row, at, batch, frame, group, group_gone


def behind_then(log: Log, seconds: float, *, is_last: bool) -> list[tuple[Any, ...]]:
    """Return the rows of `lag` for a time, from one pass over the log."""
    moment = at(seconds)
    offsets: dict[tuple[str, str, int], int | None] = {}
    for row in log.commits:
        if (is_last or row["log_ts"] <= moment) and row["txn_state"] in ("none", "committed"):
            offsets[row["group_id"], row["topic"], row["partition"]] = row.get("committed_offset")
    ends: dict[tuple[str, int], int] = {}
    for row in log.batches:
        if is_last or row["max_ts"] <= moment:
            ends[row["topic"], row["partition"]] = row["last_offset"] + 1
    rows = []
    for key, offset in offsets.items():
        if offset is not None:
            end = ends.get(key[1:])
            rows.append((*key, moment, offset, end, None if end is None else max(0, end - offset)))
    return rows


def test_lag_at_several_times(either: SparkSession) -> None:
    log = Log(either)
    moments = [-5, 3000, 7777.5, 16_000]
    expected = [row for s in moments for row in behind_then(log, s, is_last=s == moments[-1])]
    found = jobs.lag(log.commits_frame, log.batches_frame, moments=[at(s) for s in moments])
    assert len({row[3] for row in expected}) == 3
    assert_rows(found, LAG, expected)


def test_events_of_groups(either: SparkSession) -> None:
    rows = [
        group(1, "g", 0, 0, seconds=0, protocol_type=""),
        group(2, "g", 1, 2, seconds=1, leader="a"),
        group(3, "g", 2, 3, seconds=4.5, leader="a"),
        group(4, "g", 2, 3, seconds=5, leader="a"),
        group(5, "g", 3, 2, seconds=6, leader="b"),
        group(6, "g", 4, 0, seconds=9),
        group_gone(7, "g", seconds=20),
        group(8, "g", 1, 1, seconds=21, leader="c"),
        group(9, "other", 7, 1, seconds=30, leader="x"),
        group(10, "other", 7, 1, seconds=31, leader="x") | {"kind": "consumer", "member_id": "x"},
    ]
    expected = [
        ("g", at(0), "formed", 0, 0, None, None, None),
        ("g", at(1), "rebalanced", 1, 2, 0, None, 1.0),
        ("g", at(4.5), "rebalanced", 2, 3, 2, False, 3.5),
        ("g", at(5), "static member replaced", 2, 3, 3, False, 0.5),
        ("g", at(6), "rebalanced", 3, 2, 3, True, 1.0),
        ("g", at(9), "emptied", 4, 0, 2, None, 3.0),
        ("g", at(20), "removed", None, None, 0, None, 11.0),
        ("g", at(21), "formed", 1, 1, None, None, 1.0),
        ("other", at(30), "formed", 7, 1, None, None, None),
    ]
    assert_rows(jobs.rebalances(frame(either, GROUP_METADATA, rows)), REBALANCES, expected)


def test_a_partition_without_commits(either: SparkSession) -> None:
    rows = [batch("__consumer_offsets", 4, 0, 3, size=300), batch("t", 0, 0, 3)]
    rows.append(batch("__consumer_offsets", 5, 0, 0, size=0))  # an empty log
    found = jobs.hot_partitions(frame(either, COMMITS, []), frame(either, LOG_BATCHES, rows))
    assert_rows(found, HOT_PARTITIONS, [(4, 0, 300, None, 0, None, None)])


def sent(api_version: int, count: int, verdict: str, last: str | None = None) -> Row:
    return {
        "api_key": 1,
        "api": "Fetch",
        "api_version": api_version,
        "count": count,
        "verdict": verdict,
        "first_served_by": "0.8.0",
        "last_served_by": last,
        "target_min_version": 4,
        "target_max_version": 17,
    }


def report(folder: Path, name: str, started_at: str | None, *clients: tuple[str, str | None, str | None, Row]) -> None:
    listed = [
        {"client_id": client_id, "software_name": software, "software_version": version, "requests": [request]}
        for client_id, software, version, request in clients
    ]
    run = None if started_at is None else {"command": ["x"], "started_at": started_at}
    written = {"schema": 1, "target": "4.0", "run": run, "clients": listed}
    (folder / name).write_text(json.dumps(written, indent=1), encoding="utf-8")


def test_versions_over_many_reports(either: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    old, new = sent(3, 5, "breaks", "3.9"), sent(17, 100, "served")
    report(tmp_path, "a [1].json", "2026-11-20T10:00:00Z", ("c1", "java", "3.9.2", new), ("old", None, None, old))
    report(tmp_path, "b.json", "2026-11-21T10:00:00Z", ("c2", "java", "3.9.2", new), ("old", None, None, old))
    report(tmp_path / "more", "c.json", None, ("c2", "java", "3.9.2", new), ("older", None, None, old))
    seen = at(-84_600), at(1800)
    assert (seen[0].day, seen[1].hour) == (20, 10)
    java = ("java", "3.9.2", None, "4.0", 1, "Fetch", 17, "served", 3, 300, "0.8.0", None, *seen)
    expected = [
        java,
        (None, None, "old", "4.0", 1, "Fetch", 3, "breaks", 2, 10, "0.8.0", "3.9", *seen),
        (None, None, "older", "4.0", 1, "Fetch", 3, "breaks", 1, 5, "0.8.0", "3.9", None, None),
    ]
    assert_rows(jobs.versions(read_reports(either, [str(tmp_path)])), VERSIONS, expected)
    log = tmp_path / "broker-1.log"  # audited by a worker
    log.write_bytes((FIXTURES / "request-logs/3.9.2.log").read_bytes())
    rows = jobs.versions(read_reports(either, [str(tmp_path)], ["--target=4.0"])).collect()
    assert [row["client_id"] for row in rows if row["verdict"] == "breaks"].count("archive") == 1
    assert len(rows) > len(expected)


def test_the_random_log_has_all_transaction_states_and_tombstones(either: SparkSession) -> None:
    log = Log(either)
    assert Counter(row["txn_state"] for row in log.commits).keys() == {"none", "committed", "aborted", "pending"}
    assert {row["tombstone"] for row in log.commits} == {True, False}
    assert log.commits_frame.count() == 500
