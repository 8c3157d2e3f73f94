"""The deadlines of offsets, rule by rule: rows and deadlines written by hand (EX-20 to EX-41).

Times are seconds after START; the retention is one hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kproto.arrow.schemas import COMMITS, GROUP_METADATA
from kproto.spark import jobs
from kproto.spark.engine import EMBEDDED, SPARK
from kproto.spark.schemas import GROUP_EXPIRY, WHAT_IF
from tests.spark.duck import assert_rows
from tests.spark.rows import Row, at, commit, frame, group, group_gone

HOUR = 3600

COMMITTED = [
    commit(1, "simple", "t1", 0, 10, seconds=0),
    commit(2, "simple", "t1", 1, 10, seconds=30),
    commit(3, "simple", "t1", 2, 10, seconds=30, expires=100),
    commit(4, "empty", "t1", 0, 10, seconds=5),
    commit(5, "empty", "t1", 1, 10, seconds=50),
    commit(6, "empty", "t1", 2, 10, seconds=6, expires=9000),
    commit(7, "no time", "t1", 0, 10, seconds=40),
    commit(8, "living", "t1", 0, 10, seconds=7),
    commit(9, "living", "t2", 0, 10, seconds=8),
    commit(10, "living", "t2", 1, 10, seconds=8, expires=20),
    commit(11, "unknown", "t2", 0, 10, seconds=8),
    commit(12, "connect", "t2", 0, 10, seconds=8),
    commit(13, "848", "t1", 0, 10, seconds=9),
    commit(14, "848", "t2", 0, 10, seconds=9),
    commit(15, "848 empty", "t1", 0, 10, seconds=9),
    commit(16, "in doubt", "t1", 0, 10, seconds=9),
    commit(17, "in doubt", "t1", 0, 12, seconds=10, txn="pending"),
    commit(18, "in doubt", "t1", 1, 10, seconds=10),
    commit(19, "revived", "t1", 0, 10, seconds=70),
    commit(20, "gone", "t1", 0, 10, seconds=1),
    commit(21, "gone", "t1", 0, None, seconds=2),
]


def consumer(log_offset: int, name: str, member: str | None = None, topics: Sequence[str] | None = None) -> Row:
    """Return a row of GROUP_METADATA about a KIP-848 group or one of its members."""
    row = group(log_offset, name, 3, 0, topics=topics)
    return row | {
        "kind": "consumer",
        "member_id": member,
        "state_ts": None,
        "member_count": None,
        "protocol_type": None,
    }


GROUPS = [
    group(100, "empty", 1, 2, seconds=1, topics=["t1"]),
    group(101, "empty", 2, 0, seconds=20, topics=[]),
    group(102, "no time", 2, 0, seconds=20, topics=[]) | {"state_ts": None},
    group(103, "living", 1, 1, seconds=3, topics=["t1"]),
    group(104, "unknown", 1, 1, seconds=3, topics=None),
    group(105, "connect", 1, 1, seconds=3, protocol_type="connect"),
    group(106, "simple", 0, 0, seconds=1, protocol_type="", topics=[]),
    consumer(107, "848"),
    consumer(108, "848", "m1", ["t1"]),
    consumer(109, "848", "m2", ["t2"]),
    group_gone(110, "848", kind="consumer") | {"member_id": "m2"},
    consumer(111, "848 empty"),
    consumer(112, "848 empty", "m1", ["t1"]),
    group_gone(113, "848 empty", kind="consumer") | {"member_id": "m1"},
    group(114, "revived", 4, 0, seconds=10, topics=[]),
    group_gone(115, "revived", seconds=60),
]

Step = tuple[str, float | None, float | None, int, int, str]
"""Group, when it became Empty, deadline, offsets lost, offsets left, basis."""

NEWEST: list[Step] = [
    ("simple", None, 100, 1, 2, "override"),
    ("simple", None, HOUR, 1, 1, "last_commit"),
    ("simple", None, HOUR + 30, 1, 0, "last_commit"),
    ("empty", 20, HOUR + 20, 2, 1, "group_metadata"),
    ("empty", 20, 9000, 1, 0, "override"),
    ("no time", None, HOUR + 40, 1, 0, "last_commit"),
    ("living", None, 20, 1, 2, "override"),
    ("living", None, HOUR + 8, 1, 1, "last_commit"),
    ("living", None, None, 0, 1, "members"),
    ("unknown", None, None, 0, 1, "members"),
    ("connect", None, None, 0, 1, "members"),
    ("848", None, HOUR + 9, 1, 1, "last_commit"),
    ("848", None, None, 0, 1, "members"),
    ("848 empty", None, HOUR + 9, 1, 0, "last_commit"),
    ("in doubt", None, HOUR + 10, 1, 1, "last_commit"),
    ("in doubt", None, None, 0, 1, "pending"),
    ("revived", None, HOUR + 70, 1, 0, "last_commit"),
]
PENDING_EXPIRES: list[Step] = [
    ("in doubt", None, HOUR + 9, 1, 1, "last_commit"),
    ("in doubt", None, HOUR + 10, 1, 0, "last_commit"),
]
SINCE_2_4: list[Step] = [step for step in NEWEST if step[0] != "in doubt"] + PENDING_EXPIRES
SINCE_2_1: list[Step] = [step for step in SINCE_2_4 if step[0] != "living"] + [("living", None, None, 0, 3, "members")]


def moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else at(seconds)


def steps(listed: Sequence[Step]) -> list[tuple[Any, ...]]:
    return [
        (name, moment(empty), moment(deadline), lost, left, basis)
        for name, empty, deadline, lost, left, basis in listed
    ]


@pytest.mark.parametrize(
    ("either", "kafka_version", "expected"),
    [
        (SPARK, "4.0", NEWEST),
        (EMBEDDED, "4.0", NEWEST),
        (EMBEDDED, "3.9.2", SINCE_2_4),
        (EMBEDDED, "2.4.1", SINCE_2_4),
        (EMBEDDED, "2.1.1", SINCE_2_1),
    ],
    indirect=["either"],
)
def test_deadlines_depend_on_the_group(either: SparkSession, kafka_version: str, expected: list[Step]) -> None:
    commits, groups = frame(either, COMMITS, COMMITTED), frame(either, GROUP_METADATA, GROUPS)
    found = jobs.expiry(commits, groups, retention_minutes=60, kafka_version=kafka_version)
    assert_rows(found, GROUP_EXPIRY, steps(expected))


def test_before_kip_211_deadlines_depend_on_the_offset_alone(either: SparkSession) -> None:
    """EX-40, EX-41: one millisecond later, independent of the group."""
    commits, groups = frame(either, COMMITS, COMMITTED[:10]), frame(either, GROUP_METADATA, GROUPS)
    found = jobs.expiry(commits, groups, retention_minutes=60, kafka_version="2.0.1")
    late = 0.001
    expected: list[Step] = [
        ("simple", None, 100 + late, 1, 2, "override"),
        ("simple", None, HOUR + late, 1, 1, "last_commit"),
        ("simple", None, HOUR + 30 + late, 1, 0, "last_commit"),
        ("empty", 20, HOUR + 5 + late, 1, 2, "last_commit"),
        ("empty", 20, HOUR + 50 + late, 1, 1, "last_commit"),
        ("empty", 20, 9000 + late, 1, 0, "override"),
        ("no time", None, HOUR + 40 + late, 1, 0, "last_commit"),
        ("living", None, 20 + late, 1, 2, "override"),
        ("living", None, HOUR + 7 + late, 1, 1, "last_commit"),
        ("living", None, HOUR + 8 + late, 1, 0, "last_commit"),
    ]
    assert_rows(found, GROUP_EXPIRY, steps(expected))


def test_offsets_expired_under_another_retention(either: SparkSession) -> None:
    commits, groups = frame(either, COMMITS, COMMITTED[:10]), frame(either, GROUP_METADATA, GROUPS)
    found = jobs.what_if(commits, groups, current_minutes=60, retention_minutes=1, at=at(60))
    expected = [
        ("simple", 3, at(100), at(60), 0, 1),
        ("empty", 3, at(HOUR + 20), at(80), 0, 0),
        ("no time", 1, at(HOUR + 40), at(100), 0, 0),
        ("living", 3, at(20), at(20), 1, 1),
    ]
    assert_rows(found, WHAT_IF, expected)
    # KIP-211's own question: the same retention for offsets with an expire timestamp of their own too.
    found = jobs.what_if(
        commits, groups, current_minutes=60, retention_minutes=60, at=at(HOUR + 25), ignore_overrides=True
    )
    expected = [
        ("simple", 3, at(100), at(HOUR), 2, 1),
        ("empty", 3, at(HOUR + 20), at(HOUR + 20), 2, 3),
        ("no time", 1, at(HOUR + 40), at(HOUR + 40), 0, 0),
        ("living", 3, at(20), at(HOUR + 8), 2, 2),
    ]
    assert_rows(found, WHAT_IF, expected)
