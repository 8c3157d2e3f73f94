"""The jobs as commands: what each takes, how its rows are ordered, and what compaction does to them.

Spark is imported when a command runs: a mistake on the command line is told before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from datetime import datetime

    from pyspark.sql import DataFrame

    from kproto.spark.inputs import Input

RETENTION_MINUTES = 10080
"""Kafka's default of offsets.retention.minutes since 2.0 (KIP-186)."""


@dataclass(frozen=True)
class Job:
    """A job as it is called."""

    summary: str
    run: Callable[[Input, Namespace], DataFrame]
    order: tuple[str, ...]
    """Columns to sort by; with a minus, falling. Nulls come last."""
    options: tuple[str, ...] = ()
    compaction: str | None = None
    """What is to be known of these rows where compaction was at work; None: it hides nothing from them."""


def moment_of(source: Input, asked: Namespace) -> datetime:
    """Return the moment that is asked about."""
    at: datetime | None = asked.at
    return source.coverage.last_ts if at is None else at


def moments_of(source: Input, count: int, end: datetime) -> list[datetime]:
    """Return this many moments, evenly spread over the log, of which the last one is its end."""
    start = source.coverage.first_ts
    return [start + (end - start) * (number + 1) / count for number in range(count)]


def _latest(source: Input, _asked: Namespace) -> DataFrame:
    from kproto.spark.jobs import latest

    return latest(source.last_commits)


def _retention_audit(source: Input, asked: Namespace) -> DataFrame:
    from kproto.spark.jobs import retention_audit

    return retention_audit(source.commits, retention_minutes=asked.retention_minutes)


def _expiry(source: Input, asked: Namespace) -> DataFrame:
    from kproto.spark.jobs import expiry

    return expiry(
        source.commits, source.group_metadata, retention_minutes=asked.retention_minutes, release=asked.release
    )


def _what_if(source: Input, asked: Namespace) -> DataFrame:
    from kproto.spark.jobs import what_if

    return what_if(
        source.commits,
        source.group_metadata,
        current_minutes=asked.current_minutes,
        retention_minutes=asked.retention_minutes,
        at=moment_of(source, asked),
        release=asked.release,
    )


def _rates(source: Input, _asked: Namespace) -> DataFrame:
    from kproto.spark.jobs import rates

    return rates(source.commits)


def _hot_partitions(source: Input, _asked: Namespace) -> DataFrame:
    from kproto.spark.jobs import hot_partitions

    return hot_partitions(source.commits, source.log_batches)


def _lag(source: Input, asked: Namespace) -> DataFrame:
    from kproto.spark.jobs import lag

    moments = moments_of(source, asked.moments, source.coverage.last_ts)
    return lag(source.commits, source.log_batches, moments=moments)


def _rewinds(source: Input, _asked: Namespace) -> DataFrame:
    from kproto.spark.jobs import rewinds

    return rewinds(source.commits)


def _stalled(source: Input, asked: Namespace) -> DataFrame:
    from kproto.spark.jobs import stalled

    return stalled(source.commits, source.log_batches, at=moment_of(source, asked), minutes=asked.minutes)


def _rebalances(source: Input, _asked: Namespace) -> DataFrame:
    from kproto.spark.jobs import rebalances

    return rebalances(source.group_metadata)


JOBS = {
    "latest": Job(
        "the offset that each group has for each partition at the end of the log",
        _latest,
        ("group_id", "topic", "partition"),
    ),
    "retention-audit": Job(
        "what offsets.retention.minutes has to be before KIP-211 drops the overrides of clients",
        _retention_audit,
        ("-recommended_minutes", "-max_override_ms", "group_id"),
        ("retention_minutes",),
        "an override that was followed by another commit of the same offset may be gone: a lower bound",
    ),
    "expiry": Job(
        "which groups are about to lose which offsets, and when",
        _expiry,
        ("expires_ts", "group_id"),
        ("retention_minutes", "release"),
    ),
    "what-if": Job(
        "what would be lost under another retention",
        _what_if,
        ("-what_if_lost", "-lost", "what_if_expires_ts", "group_id"),
        ("other_retention", "at", "release"),
    ),
    "rates": Job(
        "commits by group, topic and hour",
        _rates,
        ("hour", "group_id", "topic"),
        (),
        "of a compacted part only the last commit of each key is left: lower bounds",
    ),
    "hot-partitions": Job(
        "what each partition of the offsets topic carries, and for whom",
        _hot_partitions,
        ("-commits", "log_partition"),
        (),
        "of a compacted part only the last commit of each key is left: groups of many partitions look hotter",
    ),
    "lag": Job(
        "how far behind each group is; needs the logs of the topics in the same directory",
        _lag,
        ("ts", "-lag", "group_id", "topic", "partition"),
        ("moments",),
        "moments before the last one may lack rows",
    ),
    "rewinds": Job(
        "which commits went backwards",
        _rewinds,
        ("ts", "log_partition", "log_offset"),
        (),
        "rewinds in a compacted part are gone, and an offset before may be older than the one it came from",
    ),
    "stalled": Job(
        "which offsets have not moved for a while, although there is something to read",
        _stalled,
        ("-stalled_minutes", "group_id", "topic", "partition"),
        ("at", "minutes"),
        "an offset may stand for longer than told",
    ),
    "rebalances": Job(
        "when groups were formed, rebalanced, emptied and removed",
        _rebalances,
        ("ts", "group_id", "generation"),
        (),
        "of a compacted part only the last event of each group is left: lower bounds",
    ),
}

VERSIONS_ORDER = ("verdict", "software_name", "software_version", "client_id", "api_key", "api_version", "target")
"""How the rows of `versions` are sorted; `breaks` happens to be the first verdict."""
