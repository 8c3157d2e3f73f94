"""Which groups are asked for, and what is taken for served; nothing is timed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.restart import History, java_hash, wanted
from kproto.records.partitioning import partition_for


@pytest.mark.parametrize("text", ["", "a", "load-00000000", "load-00062499", "polygenelubricants"])
def test_a_group_is_asked_for_by_the_partition_that_java_finds(text: str) -> None:
    assert java_hash(text) % 50 == partition_for(text, 50)


def test_a_group_of_each_partition_is_wanted_with_the_last_offset_answered(tmp_path: Path) -> None:
    (tmp_path / "state").write_text(json.dumps({"acked": list(range(1, 1001))}))
    groups = wanted(tmp_path / "state")
    assert {partition_for(group_id, 50) for group_id in groups} == set(range(50))
    assert len(groups) == 50
    assert groups["load-00000000"] == 1 << 20


def test_a_history_has_whole_requests_and_each_group_once_at_least() -> None:
    assert str(History.asked(1_000_000, 10_000_000)) == "10,000,000 commits of 1,000,000 keys"
    assert History.asked(32, 1) == History(50, 50)
