"""Tables notice another log: by cluster id, topic ids, leader epochs, and logs that became shorter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kproto.logs.files import find_partitions
from kproto.logs.identity import LogIdentity, read_identity
from kproto.spark import cli
from kproto.spark.engine import EMBEDDED, using
from kproto.spark.tables import Marks, Source, check_it_is_the_same
from tests.fixture_files import offsets_log
from tests.spark.scans import Run

RESTARTED = offsets_log("deleted-while-pending", "4.4.0")
"""The log of a broker that was restarted, so that it has two leader epochs."""


def identity_of(log: Path) -> LogIdentity:
    return read_identity(find_partitions(str(log), None))


def test_releases_store_what_identifies_a_log() -> None:
    newest = identity_of(RESTARTED)
    assert newest.cluster_id == "a3Byb3RvLW9yYWNsZS0wMQ"
    assert set(newest.topic_ids) == {"__consumer_offsets"}
    assert newest.epochs == {"0": {"0": 0, "2": 4}}
    older = identity_of(offsets_log("several-partitions", "2.8.2"))
    assert (older.cluster_id, older.topic_ids) == ("eLYd1lQ0Rf-bPu3m1Scnbg", {})
    assert older.epochs == {str(number): {"0": 0} for number in range(4)}
    oldest = identity_of(offsets_log("old-formats", "0.10.2.2"))
    assert oldest == LogIdentity(None, {}, {"0": {}})


def test_a_log_is_the_same_as_before_and_another_is_not() -> None:
    ours = identity_of(RESTARTED)
    assert ours.difference(ours) is None
    another_cluster = identity_of(offsets_log("several-partitions", "2.8.2"))
    assert ours.difference(another_cluster) == (
        "they are of cluster a3Byb3RvLW9yYWNsZS0wMQ, and this log is of cluster eLYd1lQ0Rf-bPu3m1Scnbg"
    )
    # All clusters of a KRaft release have the same cluster id in these tests.
    another_topic = identity_of(offsets_log("replaced-commits", "4.4.0"))
    assert ours.difference(another_topic) == "topic __consumer_offsets was deleted and created again"
    diverged = ours._replace(epochs={"0": {"0": 0, "2": 3}})
    assert ours.difference(diverged) == "__consumer_offsets-0 has leader epochs that begin at other offsets"
    # Retention removes the first epoch, and raises the first offset of the next one.
    assert ours.difference(ours._replace(epochs={"0": {"2": 5, "4": 9}})) is None
    assert ours.merged(another_cluster).epochs["3"] == {"0": 0}


def test_a_topic_that_was_created_again_has_another_id(capsys: pytest.CaptureFixture[str]) -> None:
    """The topic had 300 records, and 10 after it was created again; the offsets topic is the same."""
    before, after = offsets_log("before-recreation", "4.4.0"), offsets_log("recreated", "4.4.0")
    assert (lag(before, capsys), lag(after, capsys)) == (296, 6)
    difference = identity_of(before).difference(identity_of(after))
    assert difference == "topic orders was deleted and created again"


def test_without_topic_ids_the_shorter_log_is_noticed(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = offsets_log("before-recreation", "2.0.1"), offsets_log("recreated", "2.0.1")
    assert identity_of(before).difference(identity_of(after)) is None
    tables = tmp_path / "tables"
    assert run("tables", before, "-o", tables)[0] == 0
    assert lag(tables, capsys) == 296
    code, _, err = run("tables", after, "-o", tables)
    reason = "has orders-0 up to offset 299, and this log is shorter: the topic was deleted and created again"
    assert (code, err.splitlines()[-1]) == (
        2,
        f"kproto.spark: {tables}: {reason}, and the tables need another directory",
    )
    assert (lag(tables, capsys), lag(after, capsys)) == (296, 6)


def lag(path: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """Return the lag of the group, which is at offset 4."""
    capsys.readouterr()
    with using(EMBEDDED):
        assert cli.main(["lag", str(path), "--format", "jsonl", "--engine", "embedded"]) == 0
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    (found,) = (row["lag"] for row in rows if row["group_id"] == "readers")
    return int(found)


def test_a_log_that_grew_is_not_another() -> None:
    source = Source(lambda _name, _marks: None, {0: 9}, topic_ends={("orders", 0): 12})  # type: ignore[arg-type, return-value]
    marks: dict[str, Marks] = {"log_batches": {("orders", 0): 12, ("gone", 0): 40, ("__consumer_offsets", 0): 9}}
    check_it_is_the_same(source, marks, "root")
