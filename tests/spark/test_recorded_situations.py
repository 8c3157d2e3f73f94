"""Logs of real brokers in the situations of `tests.spark.record_logs`: what the jobs say, and what they cannot know."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from kproto.logs.files import find_partitions
from kproto.logs.index import tail_offset
from kproto.records.partitioning import partition_for
from kproto.spark import jobs
from kproto.spark.advice import Advice, sentence, summarize
from kproto.spark.cli import main
from kproto.spark.commands import JOBS
from kproto.spark.engine import EMBEDDED, SPARK, using
from kproto.spark.inputs import TablesInput
from kproto.spark.log_input import LogInput, empty_ends
from kproto.spark.source.options import read_options
from kproto.spark.source.pruning import partitions_at_least
from kproto.spark.source.stream import KprotoStreamReader
from kproto.spark.tables import Origin, Source, write_parquet
from kproto.spark.words import caveats
from tests.fixture_files import offsets_log
from tests.spark.report_samples import coverage
from tests.spark.scans import Command, Run

CURRENT = 10_080
SOME_COMMITS = 3
DAYS_40 = 57_600


def open_log(spark: SparkSession, situation: str, release: str) -> LogInput:
    return LogInput(spark, str(offsets_log(situation, release)))


def test_a_compacted_log_gives_no_green_light(embedded_session: SparkSession) -> None:
    """A group requested 60 days in 28 of 201 commits, and the cleaner removed all of them."""
    log = open_log(embedded_session, "compacted", "2.0.1")
    audit = jobs.retention_audit(log.commits, retention_minutes=CURRENT).cache()
    found = {row["group_id"]: (row["recommended_minutes"], row["has_offsets"]) for row in audit.collect()}
    assert found == {"seasonal": (CURRENT, True), "filler": (CURRENT, True), "deleted": (DAYS_40, False)}
    advice = summarize(audit, CURRENT)
    assert advice == Advice(CURRENT, CURRENT, over=0, gone=1)
    text, is_enough = sentence(advice, log.coverage)
    assert not is_enough
    assert re.fullmatch(
        r"offsets.retention.minutes = 10,080 is enough for the requests in this input; groups may need more "
        r"\(8\d.* % of its records were removed\); 1 group without offsets requested more",
        text,
    )


ENOUGH, MORE = Advice(CURRENT, CURRENT, 0, 0), Advice(CURRENT, 40_320, 2, 0)
PARTIAL = "it has 30 of at least 42 partitions"


@pytest.mark.parametrize(
    ("advice", "partitions", "text", "is_enough"),
    [
        (ENOUGH, 42, "offsets.retention.minutes = 10,080 is enough for every group", True),
        (ENOUGH, 30, f"is enough for the requests in this input; groups may need more ({PARTIAL})", False),
        (MORE, 42, "set offsets.retention.minutes to 40,320", False),
        (MORE, 30, f"set offsets.retention.minutes to at least 40,320 ({PARTIAL})", False),
    ],
)
def test_the_advice_says_what_it_has_not_seen(advice: Advice, partitions: int, text: str, is_enough: bool) -> None:
    found = sentence(advice, replace(coverage(), partitions=partitions, of_partitions=42))
    assert found[0].endswith(text)
    assert found[1] is is_enough


def test_the_advice_for_some_groups_is_not_for_every_group(run_embedded: Command) -> None:
    log = offsets_log("requested-retentions", "2.0.1")
    _, _, err = run_embedded("retention-audit", log, "--group", "a-day")
    expected = "is enough for the requests in this input; groups may need more (restricted to 1 group)"
    assert err.splitlines()[-1].endswith(expected)


def test_offsets_removed_at_the_beginning_are_missing(embedded_session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "__consumer_offsets-0").mkdir()
    segment = offsets_log("compacted", "2.0.1") / "__consumer_offsets-0" / f"{200:020}.log"
    (tmp_path / "__consumer_offsets-0" / segment.name).write_bytes(segment.read_bytes())
    read = LogInput(embedded_session, str(tmp_path)).coverage
    assert (read.first_offset, read.starts_late, read.missing, read.records) == (200, 1, 200, 43)


def test_the_count_of_partitions_is_at_least_what_the_directories_show(tmp_path: Path) -> None:
    for number in (0, 1, 7):
        (tmp_path / f"__consumer_offsets-{number}").mkdir()
    assert partitions_at_least(find_partitions(str(tmp_path))) == 8
    assert partitions_at_least(find_partitions(str(tmp_path))[:2]) == 2
    assert partitions_at_least(find_partitions(str(tmp_path))[:1]) == 1
    assert partitions_at_least(find_partitions(str(offsets_log("compacted", "2.0.1")))) == 1


@pytest.mark.parametrize("release", ["0.8.2.2-gzip", "0.9.0.1", "0.10.2.2", "0.10.2.2-gzip"])
def test_every_job_reads_message_sets(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"what-if": ["--retention-minutes", "60"], "stalled": ["--minutes", "0"]}
    without_rows = set()
    for job in JOBS.keys() - {"transactions", "assignments", "share-partitions"}:
        words = [job, str(offsets_log("old-formats", release)), *options.get(job, [])]
        with using(EMBEDDED):
            assert main([*words, "--engine", "embedded", "--format", "csv"]) == 0
        output = capsys.readouterr()
        assert "10 records in 10 batches" in output.err
        if len(output.out.splitlines()) == 1:
            without_rows.add(job)
    assert without_rows == {"rewinds", "rebalances", "check"}


@pytest.mark.parametrize("release", ["0.8.2.2-gzip", "0.9.0.1", "0.10.2.2", "0.10.2.2-gzip"])
def test_message_sets_are_read(embedded_session: SparkSession, release: str) -> None:
    log = open_log(embedded_session, "old-formats", release)
    read = log.coverage
    assert (read.batches, read.records, read.missing) == (10, 10, 0)
    assert read.first_ts.year == 2026
    rows = jobs.latest(log.commits).select("group_id", "topic", "committed_offset").collect()
    assert sorted(map(tuple, rows)) == [("billing", "orders", 4), ("search", "orders", 4)]


def test_the_end_of_a_log_without_records_is_known(embedded_session: SparkSession) -> None:
    """The lag is the end of the log less the offset, whether or not a record is left."""
    log = open_log(embedded_session, "no-records", "2.8.2")
    lag = jobs.lag(log.commits, log.log_batches, moments=[log.coverage.last_ts])
    found = [(row["topic"], row["log_end"], row["lag"]) for row in lag.orderBy("topic").collect()]
    assert found == [("emptied", 204, 104), ("empty", 0, 0)]
    stalled = jobs.stalled(log.commits, log.log_batches, at=log.coverage.last_ts, minutes=0)
    assert [(row["topic"], row["lag"]) for row in stalled.collect()] == [("emptied", 104)]


def test_a_stream_loses_nothing_where_there_is_nothing() -> None:
    path = offsets_log("no-records", "2.8.2")
    reader = KprotoStreamReader(read_options({"path": str(path), "view": "batches"}))
    start = reader.initialOffset()
    assert start["emptied-0"] == 204
    assert reader.latestOffset(start, ReadAllAvailable())["emptied-0"] == 204


def test_a_log_that_ends_in_an_empty_segment_ends_there(tmp_path: Path) -> None:
    folder = tmp_path / "t-3"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"x")
    assert empty_ends(find_partitions(str(tmp_path), None)) == []
    (folder / f"{17:020}.log").touch()
    assert [row[:4] for row in empty_ends(find_partitions(str(tmp_path), None))] == [("t", 3, 17, 16)]


def test_tables_say_which_commits_wait_for_a_transaction(spark: SparkSession, tmp_path: Path) -> None:
    """The transaction is at offset 2 of 5, and one of the two commits after it is of a group of its own."""
    log = open_log(spark, "open-transaction", "2.8.2")
    read = log.coverage
    source = Source(log.table, read.ends, Origin(read.partitions, read.of_partitions))
    assert write_parquet(spark, source, tmp_path)["commits"].waiting == SOME_COMMITS
    from_tables = TablesInput(spark, str(tmp_path)).coverage
    assert (from_tables.waiting, from_tables.partitions, from_tables.of_partitions) == (SOME_COMMITS, 1, 1)
    assert "3 commits after the first one of an open transaction wait" in "".join(caveats(from_tables, None))


def test_a_pending_offset_keeps_offsets_since_the_new_coordinator(embedded_session: SparkSession) -> None:
    log = open_log(embedded_session, "open-transaction", "2.8.2")
    basis = {}
    for version in ("2.8.2", "4.0"):
        rows = jobs.expiry(log.commits, log.group_metadata, retention_minutes=CURRENT, kafka_version=version)
        basis[version] = {row["group_id"]: row["basis"] for row in rows.collect()}
    assert basis["2.8.2"]["transactional"] == "last_commit"
    assert basis["4.0"]["transactional"] == "pending"


@pytest.mark.parametrize(
    ("either", "release"), [(SPARK, "4.4.0"), (EMBEDDED, "2.8.2"), (EMBEDDED, "4.4.0")], indirect=["either"]
)
def test_a_rewind_that_nobody_could_see_is_none(either: SparkSession, release: str) -> None:
    """Four groups commit 20, then 5 in a transaction, then 30; the brokers returned 5 for the first of them only."""
    log = open_log(either, "replaced-commits", release)
    found = jobs.rewinds(log.commits, log.log_batches).select("group_id", "from_offset", "to_offset", "after_loss")
    assert list(map(tuple, found.collect())) == [("seen", 20, 5, False)]
    latest = jobs.latest(log.commits).select("committed_offset").collect()
    assert [row[0] for row in latest] == [30] * 4
    assert log.coverage.markers == 4
    rates = jobs.rates(log.commits, log.log_batches).select("group_id", "commits", "rewinds")
    assert {tuple(row) for row in rates.collect()} == {
        ("seen", 3, 1),
        ("aborted", 2, 0),
        ("replaced by a plain commit", 3, 0),
        ("replaced in its transaction", 3, 0),
    }


@pytest.mark.parametrize("release", ["2.8.2", "4.4.0"])
def test_an_offset_deleted_while_another_is_pending_stays_deleted(embedded_session: SparkSession, release: str) -> None:
    """The marker of the transaction follows the tombstone; the brokers returned no offset until a restart."""
    log = open_log(embedded_session, "deleted-while-pending", release)
    in_order = log.commits.orderBy("log_offset").select("committed_offset", "txn_state")
    assert list(map(tuple, in_order.collect())) == [(20, "none"), (5, "committed"), (None, "none")]
    assert jobs.latest(log.commits).isEmpty()
    assert jobs.rewinds(log.commits, log.log_batches).isEmpty()


def test_a_consumer_group_is_emptied(embedded_session: SparkSession) -> None:
    """The members of a KIP-848 group are in records of their own."""
    log = open_log(embedded_session, "consumer-group", "4.4.0")
    assert log.markers is None
    events = jobs.rebalances(log.group_metadata).orderBy("ts", "generation")
    found = [(row["event"], row["generation"], row["members_before"], row["members"]) for row in events.collect()]
    assert found == [("formed", 2, None, 1), ("rebalanced", 3, 1, 2), ("rebalanced", 4, 2, 1), ("emptied", 5, 1, 0)]


def test_the_page_names_the_empty_group_and_the_time_of_the_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An offset of the group "" is among the rows, and the time left counts from the end of an old copy of a log."""
    log = str(offsets_log("before-recreation", "2.0.1"))
    page = tmp_path / "page.html"
    with using(EMBEDDED):
        assert main(["report", log, "-o", str(page), "--engine", "embedded"]) == 0
        capsys.readouterr()
        assert main(["lag", log, "--engine", "embedded"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]] == ["readers", '""']
    text = page.read_text(encoding="utf-8")
    assert '<span class="name">&quot;&quot;</span>' in text
    ended = re.search(r"as of (\S+ \S+), the end of the log", text)
    assert ended is not None
    assert f"Time left at {ended[1]}</th>" in text
    assert "offsets lost in the day after the end of the log" in text


def test_the_command_says_the_advice(run_embedded: Command) -> None:
    _, _, err = run_embedded("retention-audit", offsets_log("compacted", "2.0.1"))
    assert "groups may need more" in err


def test_a_group_and_its_lag_need_the_ends_of_logs_and_one_partition(
    run: Run, run_embedded: Command, tmp_path: Path
) -> None:
    """Every other partition of the offsets topic is damaged, and the batches of all segments of the topic but the last.

    Other partitions have newer records than the group's: the end of the log is the same.
    """
    intact = offsets_log("several-partitions", "2.8.2")
    damaged = shutil.copytree(intact, tmp_path / "data")
    home = f"__consumer_offsets-{partition_for('group-3', 4)}"
    for path in damaged.rglob("*.log"):
        data = bytearray(path.read_bytes())
        if path.parent.name == "orders-0" and path.name != f"{105:020}.log":
            data[8:12] = bytes(4)
        elif path.parent.name not in ("orders-0", home):
            data[-1] ^= 1
        path.write_bytes(data)
    for job in (["lag"], ["stalled", "--minutes", "0"], ["rates"]):
        words = [*job, "--group", "group-3", "--format", "jsonl"]
        _, rows, err = run(words[0], damaged, *words[1:])
        _, expected, _ = run_embedded(words[0], intact, *words[1:])
        assert [json.loads(line)["group_id"] for line in rows.splitlines()] == ["group-3"]
        assert rows == expected
        assert "of 1 partition of __consumer_offsets" in err
        if job == ["lag"]:
            row = json.loads(rows)
            assert (row["committed_offset"], row["log_end"], row["lag"]) == (3, 120, 117)


def test_markers_and_pending_commits_come_from_the_same_scan(run: Run) -> None:
    """`rewinds` needs the end markers of transactions, `expiry` the commits of open ones; `run` counts the reads."""
    _, rows, _ = run("rewinds", offsets_log("replaced-commits", "4.4.0"), "--format", "jsonl")
    assert [json.loads(line)["group_id"] for line in rows.splitlines()] == ["seen"]
    _, rows, _ = run("expiry", offsets_log("open-transaction", "2.8.2"), "--format", "jsonl")
    basis = {row["group_id"]: row["basis"] for row in map(json.loads, rows.splitlines())}
    assert basis["transactional"] == "pending"


def test_the_end_of_a_log_is_looked_for_behind_its_last_index_entry(tmp_path: Path) -> None:
    intact = offsets_log("several-partitions", "2.8.2") / "orders-0"
    damaged = shutil.copytree(intact, tmp_path / "orders-0")
    for path, offset in ((intact, 115), (damaged, 105)):
        (partition,) = find_partitions(str(path), None)
        assert tail_offset(partition) == offset
        (damaged / f"{105:020}.index").write_bytes(b"\x7f" * 8)
