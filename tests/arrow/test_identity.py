"""Logs with the same name are distinguished: the logs of real brokers, and leader epochs by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from kproto.logs.files import find_partitions
from kproto.logs.identity import LogIdentity, read_identity
from tests.fixture_files import golden_log, offsets_log


def identity_of(path: Path) -> LogIdentity:
    return read_identity(find_partitions(str(path), None))


def test_two_clusters_are_distinguished() -> None:
    first, second = (identity_of(offsets_log(name, "2.8.2")) for name in ("no-records", "open-transaction"))
    assert first.difference(first) is None
    assert (
        first.difference(second)
        == f"they are of cluster {first.cluster_id}, and this log is of cluster {second.cluster_id}"
    )


def test_a_topic_that_was_created_again_is_distinguished() -> None:
    first, second = identity_of(golden_log("4.4.0")), identity_of(offsets_log("requested-retentions", "4.4.0"))
    assert first.cluster_id == second.cluster_id
    assert first.difference(second) == "topic __consumer_offsets was deleted and created again"
    assert set(second.topic_ids) == {"__consumer_offsets", "orders"}


@pytest.mark.parametrize(
    ("later", "is_same"),
    [
        ({"0": 0, "3": 50}, True),
        ({"0": 0, "3": 50, "4": 90}, True),
        ({"0": 20, "3": 50}, True),
        ({"3": 55}, True),
        ({}, True),
        ({"0": 0, "3": 51}, False),
        ({"1": 0, "3": 51, "5": 60}, False),
    ],
)
def test_leader_epochs_begin_at_the_same_offsets(later: dict[str, int], is_same: bool) -> None:
    first = LogIdentity(None, {}, {"7": {"0": 0, "3": 50}})
    difference = first.difference(LogIdentity(None, {}, {"7": later}))
    expected = None if is_same else "__consumer_offsets-7 has leader epochs that begin at other offsets"
    assert difference == expected


def test_a_damaged_file_is_unknown(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    (folder / "leader-epoch-checkpoint").write_text("0\n1\nx y z\n")
    (folder / "partition.metadata").write_bytes(b"\xff")
    assert identity_of(tmp_path) == LogIdentity(None, {}, {"0": {}})
