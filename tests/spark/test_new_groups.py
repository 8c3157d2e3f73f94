"""Share and streams groups in the log of a real 4.4.0: each record as Kafka's dump tool prints it, and the jobs."""

from __future__ import annotations

import csv
import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from kproto.arrow.schemas import COMMITS, GROUP_METADATA
from kproto.spark import jobs
from kproto.spark.log_input import LogInput
from tests.records.dumps import lines_of
from tests.spark.record_new_groups import FOLDER
from tests.spark.rows import commit, frame
from tests.spark.scans import Command, Run

SUBJECTS = {"11": "share", "10": "share", "17": "streams", "19": "streams"}
ASSIGNED = {"14": "share", "22": "streams"}
TASKS = ("active", "standby", "warmup")


def printed(partition: str) -> Iterator[tuple[int, str, dict[str, Any], dict[str, Any] | None]]:
    """Yield offset, record type, key and value (None: a tombstone) of each record."""
    for line in lines_of((FOLDER / f"dump-{partition}.txt").read_text(encoding="utf-8")):
        if line.key is not None and line.payload is not None:
            key = json.loads(line.key)
            value = None if line.payload == "<DELETE>" else json.loads(line.payload)["data"]
            yield int(line.fields["offset"]), key["type"], key["data"], value


def rows_of(out: str) -> list[dict[str, str]]:
    return list(csv.DictReader(out.splitlines()))


def test_records_about_groups_and_members(embedded_session: SparkSession) -> None:
    rows = LogInput(embedded_session, str(FOLDER)).group_metadata.toArrow().to_pylist()
    names = ("log_offset", "kind", "group_id", "member_id", "tombstone", "generation", "subscribed_topics")
    found = [tuple(row[name] for name in names) for row in rows if row["kind"] in ("share", "streams")]
    expected = []
    for offset, record_type, key, value in printed("__consumer_offsets-0"):
        if record_type in SUBJECTS:
            data = value or {}
            subject = (SUBJECTS[record_type], key["groupId"], key.get("memberId"), value is None)
            expected.append((offset, *subject, data.get("epoch"), data.get("subscribedTopicNames")))
    assert sorted(found) == sorted(expected)
    assert {row[1] for row in found} == {"share", "streams"}


def test_owners_of_partitions_and_tasks(embedded_session: SparkSession) -> None:
    rows = LogInput(embedded_session, str(FOLDER)).assignment_records.toArrow().to_pylist()
    names = ("log_offset", "kind", "group_id", "subject", "epoch", "topic_id", "subtopology", "task", "partition")
    found = [tuple(row[name] for name in (*names, "revoked")) for row in rows if row["kind"] in ("share", "streams")]
    expected: list[tuple[Any, ...]] = []
    for offset, record_type, key, value in printed("__consumer_offsets-0"):
        if record_type in ASSIGNED:
            epoch = None if value is None else value["memberEpoch"]
            subject = (offset, ASSIGNED[record_type], key["groupId"], key["memberId"], epoch)
            owned = [] if value is None else [*_partitions(value), *_tasks(value)]
            expected += [(*subject, *one) for one in owned or [(None,) * 5]]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert {row[7] for row in found} >= {None, "active"}


def _partitions(value: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for topic in value.get("assignedPartitions", ()):
        yield from ((topic["topicId"], None, None, partition, False) for partition in topic["partitions"])


def _tasks(value: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for task in TASKS:
        for name, revoked in ((f"{task}Tasks", False), (f"{task}TasksPendingRevocation", True)):
            for one in value.get(name, ()):
                yield from ((None, one["subtopologyId"], task, partition, revoked) for partition in one["partitions"])


def test_records_of_share_states(embedded_session: SparkSession) -> None:
    rows = LogInput(embedded_session, str(FOLDER)).share_states.toArrow().to_pylist()
    names = ("log_offset", "kind", "group_id", "topic_id", "partition", "snapshot_epoch", "state_epoch", "start_offset")
    found = [tuple(row[name] for name in (*names, "delivery_complete_count", "batches")) for row in rows]
    expected = []
    for offset, record_type, key, value in printed("__share_group_state-0"):
        assert value is not None
        kind = {"0": "snapshot", "1": "update"}[record_type]
        topic_id = urlsafe_b64decode(f"{key['topicId']}==")
        numbers = (value["snapshotEpoch"], value.get("stateEpoch"), _known(value["startOffset"]))
        batches = [
            f"{one['firstOffset']}-{one['lastOffset']} {one['deliveryState']} {one['deliveryCount']}"
            for one in value["stateBatches"]
        ]
        subject = (offset, kind, key["groupId"], topic_id, key["partition"])
        expected.append((*subject, *numbers, _known(value.get("deliveryCompleteCount", -1)), batches))
    assert found == expected
    assert len(found) == 12


def _known(value: int) -> int | None:
    return None if value == -1 else value


def test_the_state_of_share_partitions(run: Run, run_embedded: Command) -> None:
    """18 records were produced; 15 are before the start offset, and the other three are done with."""
    words = ("share-partitions", FOLDER, "--format", "csv")
    code, out, _ = run_embedded(*words)
    assert code == 0
    assert run(*words)[:2] == (0, out), "and Spark reads the logs once"
    names = ("topic", "partition", "start_offset", "log_end", "delivery_complete_count", "unfinished", "updates")
    found = [tuple(row[name] for name in names) for row in rows_of(out)]
    unread = [(f"sharers-{one[0]}", one[1], "", "0", "", "", "0") for one in ("t0", "t1", "t2", "u0", "u1")]
    assert found == [*unread, ("warm-t", "0", "", "0", "", "", "0"), ("workers-t", "0", "15", "18", "3", "0", "5")]
    assert len(rows_of(run_embedded(*words, "--group", "workers-g")[1])) == 1


def test_members_of_the_groups_are_counted(run_embedded: Command) -> None:
    """Three members of a streams group joined and left, two of a share group; another share group has its member."""
    events: dict[str, list[tuple[str, str]]] = {}
    for row in rows_of(run_embedded("rebalances", FOLDER, "--format", "csv")[1]):
        events.setdefault(row["group_id"], []).append((row["event"], row["members"]))
    back = [("rebalanced", "2"), ("rebalanced", "1"), ("emptied", "0")]
    assert events["counters-g"] == [("formed", "1"), ("rebalanced", "2"), ("rebalanced", "3"), *back]
    assert events["sharers-g"][-2:] == back[1:]
    assert events["workers-g"] == [("formed", "1"), ("rebalanced", "1")]
    (owner,) = rows_of(run_embedded("assignments", FOLDER, "--format", "csv")[1])
    assert (owner["group_id"], owner["kind"], owner["topic"], owner["member_id"]) == (
        "workers-g",
        "share",
        "workers-t",
        "A",
    )


def test_a_streams_group_keeps_its_offsets_while_it_has_members(embedded_session: SparkSession) -> None:
    log = LogInput(embedded_session, str(FOLDER))
    rows = log.group_metadata.where("group_id = 'counters-g'").toArrow().to_pylist()
    commits = frame(embedded_session, COMMITS, [commit(0, "counters-g", "counters-t", 0, 5)])
    basis = []
    for count in (len(rows) // 2, len(rows)):
        groups = frame(embedded_session, GROUP_METADATA, rows[:count])
        (found,) = jobs.expiry(commits, groups, retention_minutes=60, kafka_version="4.4").collect()
        basis.append(found["basis"])
    assert basis == ["members", "last_commit"]
