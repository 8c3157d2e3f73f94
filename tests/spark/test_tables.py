"""Tables grow by new rows, also if the log has lost old ones; the result is that of a single run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES, Column, Type
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark import tables
from kproto.spark.embedded import EmbeddedSession
from kproto.spark.engine import EMBEDDED, using
from kproto.spark.from_kafka import source_of
from kproto.spark.kafka_admin import ClusterTopics
from kproto.spark.publish import Publication, TablesError
from tests.records.made import COMMIT_KEY, COMMIT_VALUE
from tests.spark.rows import Log, Row, at, batch, commit, frame, group

Frames = dict[str, DataFrame]


def frames(spark: SparkSession, commits: list[Row], groups: list[Row], batches: list[Row]) -> Frames:
    return {
        "commits": frame(spark, COMMITS, commits),
        "group_metadata": frame(spark, GROUP_METADATA, groups),
        "log_batches": frame(spark, LOG_BATCHES, batches),
    }


def source(tables_of_log: Frames) -> tables.Source:
    """Return a source that always reads from the beginning."""
    ends: dict[int | None, int] = {}
    for row in tables_of_log["log_batches"].where(f"topic = '{OFFSETS_TOPIC}'").collect():
        ends[row["partition"]] = max(ends.get(row["partition"], 0), row["last_offset"])
    return tables.Source(lambda name, _marks: tables_of_log[name], ends)


def settled(row: Row) -> Row:
    return row | {"txn_state": "committed"} if row["txn_state"] == "pending" else row


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a directory whose name URIs escape, and globs read in another way."""
    return tmp_path / "a b=ä%20+[c]{d,e}*"


def assert_tables(spark: SparkSession, root: Path, whole: Frames) -> None:
    for table in (COMMITS, GROUP_METADATA, LOG_BATCHES):
        assertDataFrameEqual(tables.read(spark, root, table), whole[table.name])


def test_a_run_adds_new_rows_and_a_second_run_nothing(spark: SparkSession, root: Path) -> None:
    log = Log(spark)
    groups = [group(1000 + number, "orders", number, 2, seconds=number * 40_000) for number in range(4)]
    everything = [settled(row) for row in log.commits]
    half = frames(spark, everything[:300], groups[:2], [row for row in log.batches if row["max_ts"] < at(10_000)])
    added = tables.write_parquet(spark, source(half), root)
    assert (added["commits"].rows, added["group_metadata"].rows) == (300, 2)
    assert_tables(spark, root, half)

    # One segment was deleted, others are new.
    later = frames(spark, everything[100:], groups, log.batches)
    added = tables.write_parquet(spark, source(later), root)
    assert (added["commits"].rows, added["group_metadata"].rows, added["commits"].waiting) == (200, 2, 0)
    whole = frames(spark, everything, groups, log.batches)
    assert_tables(spark, root, whole)

    before = sorted(root.rglob("*.parquet"))
    assert all(kind.rows == 0 for kind in tables.write_parquet(spark, source(later), root).values())
    assert sorted(root.rglob("*.parquet")) == before
    assert {path.parent.name for path in before if "group_metadata" in path.parts} == {
        "date=2026-11-21",
        "date=2026-11-22",
    }
    assert pq.ParquetFile(before[0]).metadata.row_group(0).column(0).compression == "ZSTD"


def test_commits_wait_for_the_end_of_a_transaction(spark: SparkSession, root: Path) -> None:
    rows = [
        commit(0, "g", "t", 0, 1),
        commit(1, "g", "t", 0, 2, txn="pending"),
        commit(2, "g", "t", 0, 3),
        commit(0, "h", "t", 0, 1, log_partition=1),
    ]
    added = tables.write_parquet(spark, source(frames(spark, rows, [], [])), root)
    assert (added["commits"].rows, added["commits"].waiting) == (2, 2)
    assert not (Publication(root).scratch).exists()

    ended = [settled(row) for row in rows]
    added = tables.write_parquet(spark, source(frames(spark, ended, [], [])), root)
    assert (added["commits"].rows, added["commits"].waiting) == (2, 0)
    assert_tables(spark, root, frames(spark, ended, [], []))


def test_a_micro_batch_counts_the_records_that_the_tables_have_not(spark: SparkSession, tmp_path: Path) -> None:
    tables.write_parquet(spark, source(frames(spark, [], [], [batch(OFFSETS_TOPIC, 7, 0, 50)])), tmp_path)
    topics = ClusterTopics("c", {}, {(OFFSETS_TOPIC, 7): 60, ("t", 0): 9}, {7: 60})
    records = [(7, offset, at(offset), COMMIT_KEY, COMMIT_VALUE) for offset in range(40, 60)]
    of_cluster = spark.createDataFrame(
        records, "partition int, offset bigint, timestamp timestamp, key binary, value binary"
    )
    for count in (2, 0):
        added = tables.write_parquet(spark, source_of(topics, of_cluster), tmp_path)
        assert added["log_batches"].rows == count
    found = tables.read(spark, tmp_path, LOG_BATCHES).select("topic", "base_offset", "last_offset", "record_count")
    assert sorted(map(tuple, found.collect())) == [
        (OFFSETS_TOPIC, 0, 49, 50),
        (OFFSETS_TOPIC, 50, 59, 10),
        ("t", 9, 8, 0),
    ]


def test_another_log_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    tables.write_parquet(spark, source(frames(spark, [], [], [batch("__consumer_offsets", 7, 0, 50)])), tmp_path)
    with pytest.raises(TablesError, match=r"has __consumer_offsets-7 up to offset 49, and this log ends at 9: it is"):
        tables.write_parquet(spark, source(frames(spark, [], [], [batch("__consumer_offsets", 7, 0, 10)])), tmp_path)


def test_a_directory_without_tables_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TablesError, match="it has no tables of kproto"):
        tables.read(spark, tmp_path, COMMITS)


def test_small_files_become_one_and_a_later_version_reads_them(spark: SparkSession, root: Path) -> None:
    rows = [commit(number, "g", "t", 0, number) for number in range(4)]
    for count in (1, 2, 4):
        tables.write_parquet(spark, source(frames(spark, rows[:count], [], [])), root)
    assert len(list((root / "commits").rglob("*.parquet"))) == 3
    fewer = tables.compact_parquet(spark, root)
    assert fewer == {"commits": 2, "group_metadata": 0, "log_batches": 0}
    (file,) = (root / "commits").rglob("*.parquet")
    assert "_kproto" not in file.parts
    assert_tables(spark, root, frames(spark, rows, [], []))
    assert tables.write_parquet(spark, source(frames(spark, rows, [], [])), root)["commits"].rows == 0

    later = replace(COMMITS, columns=(*COMMITS.columns, Column("reason", Type.STRING, "of a later version")))
    found = [tables.read(spark, root, later).select("log_offset", "reason").toArrow().to_pylist()]
    session: Any = EmbeddedSession()
    with using(EMBEDDED):
        found.append(tables.read(session, root, later).select("log_offset", "reason").toArrow().to_pylist())
    session.stop()
    for of_engine in found:
        by_offset = sorted(of_engine, key=lambda row: int(row["log_offset"]))
        assert by_offset == [{"log_offset": number, "reason": None} for number in range(4)]
