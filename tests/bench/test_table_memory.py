"""The bench of the offsets table, with few groups: it runs, and it detects a missing offset."""

from __future__ import annotations

import json

import pytest

import bench.__main__
from bench.group_shape import GroupShape
from bench.table_filler import Packed, Tuples, filled


def test_each_subject_is_filled_in_a_process_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.__main__.main(["table", "--fraction", "20000", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["case"] for row in rows] == [
        "1,000 groups x 10 topics x 100 partitions",
        "1,000,000 groups x 1 topics x 16 partitions",
        "4,000,000 groups x 1 topics x 1 partitions",
    ]
    for row in rows:
        assert row.keys() == {"bench", "case", "kproto", "tuples"}
        assert row["kproto"]["longest_commit_ms"] > 0


def test_a_subject_that_loses_an_offset_is_detected() -> None:
    class Forgetful(Packed):
        def lookup(self, group_id: str, topic: str, partition: int) -> int:
            return super().lookup(group_id, topic, partition) - 1

    with pytest.raises(AssertionError, match="missing"):
        filled(Forgetful(), GroupShape(3, 2, 2))
    assert filled(Tuples(), GroupShape(3, 2, 2))["next_commit_us"] > 0
