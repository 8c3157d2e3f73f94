"""The rows of jobs equal what Kafka's own tools printed about the same brokers, on both engines.

The logs of five releases are read one by one; the jobs run once over the rows of all of them, with the release as a
part of the names. No tool of Kafka shows what `retention-audit` computes beyond the stored times, the deadlines of
`expiry` and `what-if`, nor since when an offset is stalled; `versions` is about requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame

from kproto.arrow.schemas import ASSIGNMENT_RECORDS, COMMITS, GROUP_METADATA, LOG_BATCHES, TRANSACTION_STATES
from kproto.spark import jobs
from kproto.spark.engine import EMBEDDED, SPARK
from kproto.spark.jobs.common import log_ends
from kproto.spark.jobs.transactions import transactions
from kproto.spark.log_input import LogInput
from tests.spark.engines import session_of
from tests.spark.printed import Partition, Printed
from tests.spark.record_tools import MODERN, RELEASES, TOPIC, has_transactions
from tests.spark.rows import frame

PRINTED = [Printed(release) for release in RELEASES]
NAMES = {"group_id", "topic", "transactional_id"}
"""The columns to whose values the release is added."""
LATER = datetime(2100, 1, 1, tzinfo=UTC)


class Tables(NamedTuple):
    """The rows of all logs."""

    commits: DataFrame
    groups: DataFrame
    batches: DataFrame
    assignments: DataFrame
    transactions: DataFrame


@pytest.fixture(scope="module", params=[SPARK, EMBEDDED])
def tables(request: pytest.FixtureRequest) -> Iterator[Tables]:
    with session_of(request.param, request) as session:
        rows: list[list[dict[str, Any]]] = [[] for _ in Tables._fields]
        for index, printed in enumerate(PRINTED):
            with LogInput(session, str(printed.folder)).read_once("commits", "group_metadata", "log_batches") as log:
                found = [log.commits, log.group_metadata, log.log_batches, log.assignment_records]
                if has_transactions(printed.release):
                    found.append(log.transaction_states)
                for into, read in zip(rows, found, strict=False):
                    into += [_named(row, index) for row in read.toArrow().to_pylist()]
        schemas = (COMMITS, GROUP_METADATA, LOG_BATCHES, ASSIGNMENT_RECORDS, TRANSACTION_STATES)
        yield Tables(*(frame(session, *pair).persist() for pair in zip(schemas, rows, strict=True)))


def _named(row: dict[str, Any], index: int) -> dict[str, Any]:
    """Return a row with the release in its names and in the number of its partition of the offsets topic."""
    for name in NAMES & row.keys():
        row[name] = None if row[name] is None else f"{RELEASES[index]} {row[name]}"
    if row.get("subscribed_topics"):
        row["subscribed_topics"] = [f"{RELEASES[index]} {name}" for name in row["subscribed_topics"]]
    if "log_partition" in row:
        row["log_partition"] += 10 * index
    return row


def rows_of(rows: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return by_repr(tuple(row.values()) for row in dicts_of(rows.select(*columns)))


def dicts_of(rows: DataFrame) -> list[dict[str, Any]]:
    """Return rows with timestamps that have a time zone, as both engines return them in Arrow."""
    return [{name: in_utc(value) for name, value in row.items()} for row in rows.toArrow().to_pylist()]


def in_utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def key_of(printed: Printed, key: Partition) -> Partition:
    group, topic, partition = key
    return f"{printed.release} {group}", f"{printed.release} {topic}", partition


def described() -> Iterator[tuple[Partition, Any]]:
    for printed in PRINTED:
        for key, line in printed.described.items():
            yield key_of(printed, key), line


def by_repr(rows: Any) -> list[Any]:
    return sorted(rows, key=repr)


def test_latest_and_lag_are_those_of_the_group_tool(tables: Tables) -> None:
    """kafka-consumer-groups shows a lag below 0 for an offset beyond the end; `lag` is 0 there, and `check` has a row.

    On 0.10.2.2, group "deleted" exists, and no tool was asked about it.
    """
    kept = key_of(PRINTED[0], ("deleted", TOPIC, 0))
    latest = rows_of(jobs.latest(tables.commits), "group_id", "topic", "partition", "committed_offset")
    assert latest == by_repr([(*key, line.offset) for key, line in described()] + [(*kept, 3)])
    lag = jobs.lag(tables.commits, tables.batches, moments=[LATER])
    columns = ("group_id", "topic", "partition", "committed_offset", "log_end", "lag")
    expected = [(*key, line.offset, line.end, max(0, line.lag)) for key, line in described()]
    assert rows_of(lag, *columns) == by_repr([*expected, (*kept, 3, 40, 37)])
    behind = [(*key, line.end, line.lag) for key, line in described() if line.lag > 0]
    stalled = jobs.stalled(tables.commits, tables.batches, at=LATER, minutes=0)
    found = rows_of(stalled, "group_id", "topic", "partition", "log_end", "lag")
    assert found == by_repr([*behind, (*kept, 40, 37)])
    beyond = [("offset beyond the end", *key, line.end, line.offset) for key, line in described() if line.lag < 0]
    check = jobs.check(tables.commits, tables.groups, tables.batches, None)
    assert rows_of(check, "invariant", "group_id", "topic", "partition", "limit", "value") == by_repr(beyond)


def test_deadlines_are_about_the_offsets_of_the_group_tool(tables: Tables) -> None:
    """No tool shows when an offset expires. But each offset that is shown has a deadline, or is kept: by a member that
    is shown, too, or by the open transaction that has another offset for it pending.
    """
    shown = Counter(key[0] for key, _ in described()) + Counter({f"{PRINTED[0].release} deleted": 1})
    with_members = {key[0] for key, line in described() if line.member_id is not None}
    expiry = dicts_of(jobs.expiry(tables.commits, tables.groups, retention_minutes=60))
    found, kept = Counter[str](), Counter[str]()
    for row in expiry:
        count = row["offsets_left"] if row["expires_ts"] is None else row["offsets_lost"]
        found[row["group_id"]] += count
        kept[row["basis"]] += count if row["expires_ts"] is None else 0
    assert found == shown
    assert {row["group_id"] for row in expiry if row["basis"] == "members"} == with_members
    assert kept["members"] == sum(shown[group] for group in with_members)
    what_if = jobs.what_if(tables.commits, tables.groups, current_minutes=10080, retention_minutes=60, at=LATER)
    assert dict(rows_of(what_if, "group_id", "offsets")) == shown
    lost = sum(row["offsets_lost"] for row in expiry)
    assert sum(row[0] for row in rows_of(what_if, "what_if_lost")) == lost


def test_ends_are_those_of_the_offsets_tool(tables: Tables) -> None:
    ends = log_ends(tables.batches)
    of_topic = [row for row in rows_of(ends, "topic", "partition", "log_end") if row[0].endswith(f" {TOPIC}")]
    expected = [
        (f"{printed.release} {topic}", partition, end)
        for printed in PRINTED
        for (topic, partition), end in printed.ends.items()
    ]
    assert of_topic == by_repr(expected)


def test_commits_are_those_of_the_dump_tool(tables: Tables) -> None:
    """Each record, and the counts over them: rates, rewinds and hot partitions."""
    columns = ("log_partition", "log_offset", "log_ts", "group_id", "topic", "partition", "committed_offset")
    found = rows_of(tables.commits, *columns)
    expected, rates, sent = [], Counter[Any](), Counter[Any]()
    rewinds = []
    for index, printed in enumerate(PRINTED):
        before: dict[Partition, int] = {}
        for one in printed.commits:
            key, number = key_of(printed, one.key), 10 * index + one.log_partition
            created = moment(one.created_ms)
            expected.append((number, one.log_offset, created, *key, one.offset))
            if one.offset is None:
                continue
            sent[number] += 1
            if one.counts:
                rates[key[:2]] += 1
                if before.get(key, 0) > one.offset:
                    rewinds.append((*key, created, before[key], one.offset))
                before[key] = one.offset
        if printed.is_cut:
            assert printed.release in ("1.1.1", "2.0.1")
            expected.append(next(row for row in found if row[0] == 10 * index + 1 and row[-1] is None))
    assert found == by_repr(expected)
    assert len(expected) == 69
    per_hour = dicts_of(jobs.rates(tables.commits, tables.batches))
    assert counted(((row["group_id"], row["topic"]), row["commits"]) for row in per_hour) == rates
    assert rows_of(
        jobs.rewinds(tables.commits, tables.batches),
        *("group_id", "topic", "partition", "ts", "from_offset", "to_offset"),
    ) == by_repr(rewinds)
    hot = jobs.hot_partitions(tables.commits, tables.batches)
    assert dict(rows_of(hot.where("log_partition is not null"), "log_partition", "commits")) == sent


def counted(pairs: Iterator[tuple[Any, int]]) -> Counter[Any]:
    found = Counter[Any]()
    for name, count in pairs:
        found[name] += count
    return found


def moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)


def test_batches_are_those_of_the_dump_tool(tables: Tables) -> None:
    """Up to 2.0 the tool prints records; of a batch with several, `log_batches` has the last one."""
    columns = ("topic", "partition", "last_offset", "max_ts", "codec", "magic")
    found = rows_of(tables.batches.where("bytes > 0"), *columns)
    expected = {
        (
            f"{printed.release} {row['topic']}",
            row["partition"],
            int(row.get("lastoffset") or row["offset"]),
            moment(int(row["createtime"])),
            row["compresscodec"],
            int(row["magic"]),
        )
        for printed in PRINTED
        for row in printed.batches
    }
    last = {row[:3] for row in found}
    assert found == by_repr(row for row in expected if row[:3] in last)
    assert len(found) == 230


def test_events_of_groups_are_those_of_the_dump_tool(tables: Tables) -> None:
    expected = [
        (f"{printed.release} {one.group_id}", moment(one.created_ms), one.generation)
        for printed in PRINTED
        for one in printed.groups
    ]
    events = jobs.rebalances(tables.groups)
    cut = {f"{printed.release} deleted" for printed in PRINTED if printed.is_cut}
    found = rows_of(events, "group_id", "ts", "generation")
    assert [row for row in found if row[0] not in cut] == by_repr(expected)
    members = {
        (f"{printed.release} {one.group_id}", one.generation): one.members
        for printed in PRINTED
        for one in printed.groups
        if one.members is not None
    }
    known = rows_of(events.where("generation is not null"), "group_id", "generation", "members")
    assert {row[:2]: row[2] for row in known if not row[0].endswith(MODERN)} == members
    assert [row[2] for row in known if row[0].endswith(MODERN)] == [1, 2]


def test_owners_are_those_of_the_group_tool(tables: Tables) -> None:
    session = tables.commits.sparkSession
    names = session.createDataFrame([], "topic_id string, name string")
    found = rows_of(jobs.assignments(tables.assignments, names), "group_id", "partition", "member_id", "owners")
    expected = [(key[0], key[2], line.member_id, 1) for key, line in described() if line.member_id is not None]
    assert found == by_repr(expected)
    assert len(expected) == 3 * (len(PRINTED) + 1)


def test_transactions_are_those_of_the_dump_tool_and_the_transactions_tool(tables: Tables) -> None:
    rows = dicts_of(transactions(tables.transactions, at=LATER))
    found = {
        row["transactional_id"]: (
            *(row[name] for name in ("state", "producer_id", "producer_epoch", "timeout_ms")),
            round(row["updated_ts"].timestamp() * 1000),
            tuple(row["partitions"]),
        )
        for row in rows
    }
    expected: dict[str, Any] = {
        f"{printed.release} {name}": value for printed in PRINTED for name, value in printed.transactions.items()
    }
    assert found == expected
    assert len(found) == 8
    newest = PRINTED[-1]
    listed = {f"{newest.release} {name}": value for name, value in newest.listed_transactions.items()}
    assert {name: found[name][:2] for name in listed} == listed


def test_stored_times_are_those_of_the_dump_tool(tables: Tables) -> None:
    """Only the tool of 4.x prints them. `retention-audit` shows the longest of these differences."""
    audit = jobs.retention_audit(tables.commits, retention_minutes=1).collect()
    found = {row["group_id"]: row["max_override_ms"] for row in audit if row["group_id"].startswith("4.4.0 ")}
    longest: dict[str, int | None] = {}
    for one in PRINTED[-1].commits:
        if one.commit_ms is not None and one.counts:
            name = f"4.4.0 {one.key[0]}"
            asked = None if one.expire_ms is None else one.expire_ms - one.commit_ms
            longest[name] = max(asked, longest.get(name) or 0) if asked is not None else longest.get(name)
    assert found == longest
    assert list(filter(None, found.values())) == [28 * 86_400_000]
