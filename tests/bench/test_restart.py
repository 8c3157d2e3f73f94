"""The groups that the bench fetches and the size of its history; nothing is timed."""

from __future__ import annotations

import json
from pathlib import Path

from bench.restart import History, wanted
from kproto.records.partitioning import partition_for


def test_one_group_of_each_partition_is_fetched_with_its_last_acknowledged_offset(tmp_path: Path) -> None:
    (tmp_path / "state").write_text(json.dumps({"acked": list(range(1, 1001))}))
    groups = wanted(tmp_path / "state")
    assert {partition_for(group_id, 50) for group_id in groups} == set(range(50))
    assert len(groups) == 50
    assert groups["load-00000000"] == 1 << 20


def test_a_history_has_whole_requests_and_each_group_at_least_once() -> None:
    assert str(History.of(1_000_000, 10_000_000)) == "10,000,000 commits of 1,000,000 keys"
    assert History.of(32, 1) == History(50, 50)
