"""`assignments` returns the owners of partitions, on logs of real brokers, at each point of a log."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kproto.arrow.schemas import ASSIGNMENT_RECORDS
from kproto.logs.blocks import SegmentBlocks
from kproto.spark import cli, jobs
from kproto.spark.engine import EMBEDDED, using
from kproto.spark.log_input import LogInput
from kproto.spark.schemas import ASSIGNMENTS
from tests.fixture_files import GOLDEN, offsets_log
from tests.spark.duck import assert_rows
from tests.spark.engines import session_of
from tests.spark.rows import at, frame
from tests.spark.scans import Run

NEWEST = GOLDEN / "logs" / "4.4.0"
TOPIC_ID = "GzioApsyRaqaLIPJCNZUaQ"


def owners(capsys: pytest.CaptureFixture[str], log: Path, *more: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    with using(EMBEDDED):
        assert cli.main(["assignments", str(log), "--engine", "embedded", "--format", "jsonl", *more]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_owners_in_classic_and_consumer_groups(capsys: pytest.CaptureFixture[str]) -> None:
    """The members of other groups have left."""
    rows = owners(capsys, NEWEST)
    found = [
        (row["group_id"], row["kind"], row["topic"], row["topic_id"], row["partition"], row["epoch"]) for row in rows
    ]
    of_k848 = [("k848", "consumer", None, TOPIC_ID, partition, 2) for partition in range(3)]
    assert found == [*of_k848, *(("static", "classic", "t", None, partition, 1) for partition in range(3))]
    assert {(row["owners"], row["revoked"]) for row in rows} == {(1, False)}
    assert [row["member_id"][:7] for row in rows] == ["75affcd"] * 3 + ["inst-1-"] * 3
    assert owners(capsys, NEWEST, "--group", "static") == rows[3:]


def test_a_partition_has_one_owner_after_each_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two members joined and left; the second one joined while the first had the only partition."""
    log = shutil.copytree(offsets_log("consumer-group", "4.4.0"), tmp_path / "log")
    segment = log / "__consumer_offsets-0" / f"{0:020}.log"
    with segment.open("rb") as file:
        blocks = SegmentBlocks(file, segment.name, base_offset=0, is_newest=True)
        ends = [block.position + end for block in blocks for end in block.ends()]
    whole, seen = segment.read_bytes(), []
    for end in ends:
        segment.write_bytes(whole[:end])
        seen.append([(row["member_id"][:4], row["owners"]) for row in owners(capsys, log)])
    assert seen == [[("/cjm", 1)], [("/cjm", 1)], [], []]


def test_names_of_topics_and_two_owners(either: SparkSession) -> None:
    def record(offset: int, member: str, topic_id: str | None, partition: int | None, *, revoked: bool = False) -> Any:
        epoch = None if partition is None else 4
        row = {"log_partition": 0, "log_offset": offset, "log_ts": at(offset), "group_id": "g", "kind": "consumer"}
        row |= {"subject": member, "member_id": member, "epoch": epoch, "topic_id": topic_id, "partition": partition}
        return row | {"revoked": None if partition is None else revoked}

    records = [record(1, "a", "id", 0), record(2, "a", "id", 1), record(2, "a", "id", 2, revoked=True)]
    records += [
        record(3, "b", "id", 2),
        record(4, "c", "id", 3),
        record(5, "c", None, None),
        record(6, "d", "no name", 0),
    ]
    for member, task in (("a", "active"), ("b", "standby")):
        records.append(record(7, member, None, 0) | {"kind": "streams", "subtopology": "0", "task": task})
    names = either.createDataFrame([("id", "orders")], "topic_id string, name string")
    found = jobs.assignments(frame(either, ASSIGNMENT_RECORDS, records), names)
    expected = [
        ("g", "consumer", "orders", "id", 1, "a", 4, False, at(2), 1, 0, 2),
        ("g", "consumer", "orders", "id", 2, "a", 4, True, at(2), 2, 0, 2),
        ("g", "consumer", "orders", "id", 2, "b", 4, False, at(3), 2, 0, 3),
        ("g", "consumer", None, "no name", 0, "d", 4, False, at(6), 1, 0, 6),
    ]
    tasks = [
        ("g", "streams", None, None, 0, member, 4, False, at(7), 1, 0, 7, "0", task)
        for member, task in (("a", "active"), ("b", "standby"))
    ]
    assert_rows(found, ASSIGNMENTS, [*((*row, None, None) for row in expected), *tasks])


def test_topics_of_the_log_dir_have_names(request: pytest.FixtureRequest) -> None:
    with session_of(EMBEDDED, request) as session:
        names = LogInput(session, str(offsets_log("before-recreation", "4.4.0"))).topic_names.collect()
    assert {row["name"] for row in names} == {"__consumer_offsets", "orders"}


def test_spark_returns_the_same(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("assignments", NEWEST, "--format", "jsonl")
    assert (code, err) == (0, "")
    assert [json.loads(line) for line in out.splitlines()] == owners(capsys, NEWEST)
