"""On both engines, the jobs return the rows that SQL queries in DuckDB return, on a random log and on recorded logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from kproto.arrow.schemas import LATEST
from kproto.spark import jobs
from kproto.spark.engine import EMBEDDED, SPARK
from kproto.spark.log_input import LogInput
from kproto.spark.schemas import HOT_PARTITIONS, RATES, RETENTION_AUDIT, REWINDS, STALLED
from tests.fixture_files import GOLDEN
from tests.spark.duck import assert_same
from tests.spark.engines import session_of
from tests.spark.rows import Log, at

APPLIED = "(SELECT * FROM commits WHERE txn_state IN ('none', 'committed'))"
IN_ORDER = "PARTITION BY group_id, topic, partition ORDER BY log_offset"
MOVES = f"""
    SELECT * FROM (
        SELECT *, lag(tombstone, 1, false) OVER ({IN_ORDER}) AS after_loss,
            last_value(committed_offset IGNORE NULLS) OVER (
                {IN_ORDER} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS previous
        FROM {APPLIED}
    ) WHERE NOT tombstone
"""


RANDOM = "random"


class Frames(NamedTuple):
    """The tables of a log."""

    name: str
    commits_frame: DataFrame
    batches_frame: DataFrame
    last_commits: DataFrame


LOGS = {SPARK: (RANDOM, "4.4.0"), EMBEDDED: (RANDOM, "2.0.1", "4.4.0", "1", "2", "3")}
"""Recorded logs, and seeds of random ones; Spark takes a second of CPU for each job."""
PARAMS = [(engine, name) for engine, names in LOGS.items() for name in names]


@pytest.fixture(scope="module", params=PARAMS, ids="-".join)
def log(request: pytest.FixtureRequest) -> Iterator[Frames]:
    engine, name = request.param
    with session_of(engine, request) as spark:
        yield frames(spark, name)


def frames(spark: SparkSession, name: str) -> Frames:
    if name == RANDOM or name.isdigit():
        made = Log(spark) if name == RANDOM else Log(spark, int(name))
        return Frames(RANDOM, made.commits_frame.cache(), made.batches_frame.cache(), made.commits_frame)
    recorded = LogInput(spark, str(GOLDEN / "logs" / name))
    return Frames(name, recorded.commits.cache(), recorded.log_batches.cache(), recorded.last_commits)


def test_latest(log: Frames) -> None:
    query = f"""
        SELECT group_id, topic, partition, committed_offset, leader_epoch, metadata, commit_ts, expire_ts,
            log_partition, log_offset
        FROM {APPLIED} AS a
        WHERE NOT tombstone AND NOT EXISTS (
            SELECT 1 FROM {APPLIED} AS b
            WHERE (a.group_id, a.topic, a.partition) = (b.group_id, b.topic, b.partition)
            AND b.log_offset > a.log_offset
        )
    """
    expected = assert_same(jobs.latest(log.last_commits), LATEST, query, commits=log.commits_frame)
    assert expected.num_rows > 10


def test_retention_audit(log: Frames) -> None:
    query = """
        WITH requested AS (
            SELECT *, CASE WHEN epoch_ms(expire_ts) - epoch_ms(commit_ts) <> 86400000
                THEN epoch_ms(expire_ts) - epoch_ms(commit_ts) END AS override
            FROM commits WHERE NOT tombstone
        )
        SELECT group_id, max(override) AS max_override_ms, count(override) AS n_overrides, count(*) AS n_commits,
            min(log_ts) AS first_seen, max(log_ts) AS last_seen,
            greatest(1440, coalesce((max(override) + 59999) // 60000, 0)) AS recommended_minutes,
            EXISTS (
                SELECT 1 FROM (
                    SELECT arg_max(tombstone, log_offset) AS is_gone FROM commits AS c
                    WHERE c.group_id = requested.group_id AND txn_state <> 'aborted' GROUP BY topic, partition
                ) WHERE NOT is_gone
            ) AS has_offsets
        FROM requested GROUP BY group_id
    """
    expected = assert_same(
        jobs.retention_audit(log.commits_frame, retention_minutes=1440),
        RETENTION_AUDIT,
        query,
        commits=log.commits_frame,
    )
    # Brokers before 2.1 store their own retention with every commit: with another --retention-minutes, it counts as an
    # override.
    found = {RANDOM: {1440, 11_667}, "2.0.1": {1440, 10_080}, "4.4.0": {1440}}
    assert set(expected["recommended_minutes"].to_pylist()) == found[log.name]


def test_rates(log: Frames) -> None:
    query = f"""
        SELECT group_id, topic, date_trunc('hour', log_ts) AS hour, count(*) AS commits,
            count(*) FILTER (committed_offset < previous) AS rewinds
        FROM ({MOVES}) GROUP BY ALL
    """
    expected = assert_same(jobs.rates(log.commits_frame, log.batches_frame), RATES, query, commits=log.commits_frame)
    assert sum(expected["rewinds"].to_pylist()) > 10 or log.name != RANDOM


def test_rewinds(log: Frames) -> None:
    query = f"""
        SELECT group_id, topic, partition, log_ts AS ts, previous AS from_offset, committed_offset AS to_offset,
            previous - committed_offset AS rewound, after_loss, log_partition, log_offset
        FROM ({MOVES}) WHERE committed_offset < previous
    """
    expected = assert_same(
        jobs.rewinds(log.commits_frame, log.batches_frame), REWINDS, query, commits=log.commits_frame
    )
    assert set(expected["after_loss"].to_pylist()) == {True, False} or log.name != RANDOM


def test_hot_partitions(log: Frames) -> None:
    query = """
        WITH c AS (SELECT * FROM commits WHERE NOT tombstone),
        g AS (SELECT log_partition, group_id, count(*) AS n FROM c GROUP BY ALL)
        SELECT log_partition, sum(n) AS commits, any_value(bytes) AS bytes, sum(n) / (SELECT count(*) FROM c) AS share,
            count(*) AS groups, first(group_id ORDER BY n DESC, group_id) AS top_group, max(n) / sum(n) AS top_share
        FROM g JOIN (SELECT partition AS log_partition, sum(bytes) AS bytes FROM batches
            WHERE topic = '__consumer_offsets' GROUP BY ALL) USING (log_partition)
        GROUP BY log_partition
    """
    found = jobs.hot_partitions(log.commits_frame, log.batches_frame)
    expected = assert_same(found, HOT_PARTITIONS, query, commits=log.commits_frame, batches=log.batches_frame)
    assert sum(expected["share"].to_pylist()) == pytest.approx(1)


def test_stalled(log: Frames) -> None:
    query = f"""
        WITH a AS {APPLIED},
        now AS (
            SELECT group_id, topic, partition, arg_max_null(committed_offset, log_offset) AS standing
            FROM a GROUP BY ALL
        ),
        other AS (
            SELECT group_id, topic, partition, max(log_offset) FILTER (committed_offset IS DISTINCT FROM standing) AS o
            FROM a JOIN now USING (group_id, topic, partition) GROUP BY ALL
        ),
        ends AS (SELECT topic, partition, max(last_offset) + 1 AS log_end FROM batches GROUP BY ALL)
        SELECT group_id, topic, partition, committed_offset, min(log_ts) AS since_ts, max(log_ts) AS last_commit_ts,
            count(*) AS commits, any_value(log_end) AS log_end,
            (epoch_ms(TIMESTAMPTZ '2026-11-21 14:35:00+00') - epoch_ms(min(log_ts))) // 60000 AS stalled_minutes,
            CASE WHEN any_value(log_end) IS NOT NULL THEN greatest(any_value(log_end) - committed_offset, 0) END AS lag
        FROM a JOIN other USING (group_id, topic, partition) LEFT JOIN ends USING (topic, partition)
        WHERE log_offset > coalesce(o, -1) AND committed_offset IS NOT NULL
        GROUP BY group_id, topic, partition, committed_offset
        HAVING stalled_minutes >= 10 AND (lag IS NULL OR lag > 0)
    """
    found = jobs.stalled(log.commits_frame, log.batches_frame, at=at(5 * 3600 + 300), minutes=10)
    expected = assert_same(found, STALLED, query, commits=log.commits_frame, batches=log.batches_frame)
    assert {row is None for row in expected["lag"].to_pylist()} == ({True, False} if log.name == RANDOM else {True})
