"""Rows of the tables from their essential values, and a log of a few hundred random rows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES, Table
from kproto.spark.schemas import ddl

Row = dict[str, Any]

START = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Return the time ``seconds`` after START, in whole milliseconds as in Kafka."""
    return START + timedelta(milliseconds=round(seconds * 1000))


def frame(spark: SparkSession, table: Table, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Return a DataFrame of a table; a column that a row does not name is null."""
    listed = []
    for row in rows:
        unknown = row.keys() - set(table.names)
        assert not unknown, f"{table.name} has no {unknown}"
        listed.append(tuple(row.get(name) for name in table.names))
    return spark.createDataFrame(listed, ddl(table))


def commit(
    log_offset: int,
    group_id: str,
    topic: str,
    partition: int,
    committed_offset: int | None,
    *,
    seconds: float = 0,
    expires: float | None = None,
    log_partition: int = 0,
    txn: str = "none",
) -> Row:
    """Return a row of COMMITS; a committed offset of None is a tombstone. Times are seconds after START."""
    row: Row = {
        "log_partition": log_partition,
        "log_offset": log_offset,
        "log_ts": at(seconds),
        "group_id": group_id,
        "topic": topic,
        "partition": partition,
        "tombstone": committed_offset is None,
        "txn_state": txn,
    }
    if txn != "none":
        row["producer_id"] = 4000
    if committed_offset is not None:
        row |= {"committed_offset": committed_offset, "metadata": "", "commit_ts": at(seconds)}
        row |= {"value_version": 3} if expires is None else {"value_version": 1, "expire_ts": at(expires)}
    return row


def group(
    log_offset: int,
    group_id: str,
    generation: int,
    members: int,
    *,
    seconds: float = 0,
    state: float | None = None,
    protocol_type: str = "consumer",
    topics: Iterable[str] | None = None,
    leader: str | None = None,
    log_partition: int = 0,
) -> Row:
    """Return a row of GROUP_METADATA about a classic group, in its state since ``state`` (``seconds``)."""
    return {
        "log_partition": log_partition,
        "log_offset": log_offset,
        "log_ts": at(seconds),
        "group_id": group_id,
        "kind": "classic",
        "tombstone": False,
        "protocol_type": protocol_type,
        "generation": generation,
        "protocol": "range" if members else None,
        "leader": leader,
        "state_ts": at(seconds if state is None else state),
        "member_count": members,
        "subscribed_topics": None if topics is None else sorted(topics),
    }


def group_gone(log_offset: int, group_id: str, *, seconds: float = 0, kind: str = "classic") -> Row:
    return {
        "log_partition": 0,
        "log_offset": log_offset,
        "log_ts": at(seconds),
        "group_id": group_id,
        "kind": kind,
        "tombstone": True,
    }


def batch(topic: str, partition: int, base_offset: int, count: int, *, seconds: float = 0, size: int = 100) -> Row:
    return {
        "topic": topic,
        "partition": partition,
        "base_offset": base_offset,
        "last_offset": base_offset + count - 1,
        "max_ts": at(seconds),
        "bytes": size,
        "codec": "none",
        "record_count": count,
        "magic": 2,
        "control": False,
        "transactional": False,
    }


class Log:
    """Commits of some groups over five hours, random from a fixed seed."""

    def __init__(self, spark: SparkSession, seed: int = 6) -> None:
        chance = random.Random(seed)  # noqa: S311
        self.commits: list[Row] = []
        self.batches: list[Row] = []
        at_offset: dict[tuple[str, int], int] = {}
        names = ["orders", "billing", "audit", "größe"]
        for log_offset in range(500):
            seconds = log_offset * 36 + chance.random()
            name = chance.choice(names)
            retention = 86_400 if name == "audit" else chance.choice([60, 86_400, 700_000])
            key = (name, chance.randrange(3))
            at_offset[key] = max(0, at_offset.get(key, 0) + chance.choice([0, 1, 5, 20, -7]))
            self.commits.append(
                commit(
                    log_offset,
                    name,
                    chance.choice(["t1", "t2"]) if name == "audit" else "t1",
                    key[1],
                    None if chance.random() < 0.06 else at_offset[key],
                    seconds=seconds,
                    expires=seconds + retention if chance.random() < 0.2 else None,
                    log_partition=len(name) % 3,
                    txn=chance.choice(["committed", "aborted", "pending"]) if chance.random() < 0.1 else "none",
                )
            )
            self.batches.append(batch("__consumer_offsets", len(name) % 3, log_offset, 1, seconds=seconds))
        for partition in range(2):  # the logs of t1-2 and t2 are missing
            end = 0
            for number in range(60):
                count = chance.randrange(1, 9)
                self.batches.append(batch("t1", partition, end, count, seconds=number * 300, size=70 * count))
                end += count
        self.commits_frame = frame(spark, COMMITS, self.commits)
        self.batches_frame = frame(spark, LOG_BATCHES, self.batches)
        self.no_groups = frame(spark, GROUP_METADATA, [])
