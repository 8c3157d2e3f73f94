"""The jobs as commands: their options, the order of their rows, and the effect of compaction on them.

Spark is imported when a job runs, so a mistake on the command line is reported at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from datetime import datetime

    from pyspark.sql import DataFrame

    from kproto.spark.input import Input

RETENTION_MINUTES = 10080
"""Kafka's default of offsets.retention.minutes since 2.0 (KIP-186)."""


@dataclass(frozen=True)
class Job:
    """A job as a command."""

    summary: str
    run: Callable[[Input, Namespace], DataFrame]
    reads: tuple[str, ...] | Callable[[Namespace], tuple[str, ...]] | None
    """The names of what it reads, for `kproto.spark.input.Input.read_once`, or a function of the options; None: records
    that no table has, and no coverage."""
    order: tuple[str, ...]
    """Columns to sort by; a minus sorts in descending order. Nulls come last."""
    options: tuple[str, ...] = ()
    compaction: str | None = None
    """What compaction hides from these rows; None: nothing."""
    rows_are_findings: bool = False
    """Whether each row is something to mend: with rows, the command ends with exit code 1."""

    def reads_with(self, options: Namespace) -> tuple[str, ...] | None:
        """Return `reads` with some options."""
        return self.reads(options) if callable(self.reads) else self.reads


def time_of(source: Input, options: Namespace) -> datetime:
    """Return the time given by --at: by default, the end of the log."""
    at: datetime | None = options.at
    return source.end_ts if at is None else at


def times_of(source: Input, count: int, end: datetime) -> list[datetime]:
    """Return ``count`` times at equal distances over the log; the last one is ``end``."""
    start = source.coverage.first_ts
    return [start + (end - start) * (number + 1) / count for number in range(count)]


def _latest(source: Input, _options: Namespace) -> DataFrame:
    from kproto.spark.jobs import latest

    return latest(source.last_commits)


def _retention_audit(source: Input, options: Namespace) -> DataFrame:
    from kproto.spark.jobs import retention_audit

    return retention_audit(source.commits, retention_minutes=options.retention_minutes)


def _expiry(source: Input, options: Namespace) -> DataFrame:
    from kproto.spark.jobs import expiry

    return expiry(
        source.last_commits,
        source.group_metadata,
        retention_minutes=options.retention_minutes,
        kafka_version=options.kafka_version,
    )


def _what_if(source: Input, options: Namespace) -> DataFrame:
    from kproto.spark.jobs import what_if

    return what_if(
        source.last_commits,
        source.group_metadata,
        current_minutes=options.current_minutes,
        retention_minutes=options.retention_minutes,
        at=time_of(source, options),
        kafka_version=options.kafka_version,
        ignore_overrides=options.ignore_overrides,
    )


def _rates(source: Input, _options: Namespace) -> DataFrame:
    from kproto.spark.jobs import rates

    return rates(source.commits, source.markers)


def _hot_partitions(source: Input, _options: Namespace) -> DataFrame:
    from kproto.spark.jobs import hot_partitions

    return hot_partitions(source.commits, source.offsets_batches)


def _lag(source: Input, options: Namespace) -> DataFrame:
    from kproto.spark.jobs import lag

    moments = times_of(source, options.moments, source.end_ts)
    if len(moments) > 1:
        return lag(source.commits, source.log_batches, moments=moments)
    return lag(source.last_commits, source.log_ends, moments=moments)


def _reads_of_lag(options: Namespace) -> tuple[str, ...]:
    return ("commits", "log_batches") if options.moments > 1 else ("last_commits", "log_ends")


def _rewinds(source: Input, _options: Namespace) -> DataFrame:
    from kproto.spark.jobs import rewinds

    return rewinds(source.commits, source.markers)


def _stalled(source: Input, options: Namespace) -> DataFrame:
    from kproto.spark.jobs import stalled

    return stalled(source.commits, source.log_ends, at=time_of(source, options), minutes=options.minutes)


def _rebalances(source: Input, _options: Namespace) -> DataFrame:
    from kproto.spark.jobs import rebalances

    return rebalances(source.group_metadata)


def _check(source: Input, _options: Namespace) -> DataFrame:
    from kproto.spark.jobs import check

    return check(source.commits, source.group_metadata, source.log_batches, source.cleaned)


def _assignments(source: Input, _options: Namespace) -> DataFrame:
    from kproto.spark.jobs import assignments

    return assignments(source.assignment_records, source.topic_names)


def _share_partitions(source: Input, _options: Namespace) -> DataFrame:
    from kproto.spark.jobs.share_partitions import share_partitions

    return share_partitions(source.share_states.persist(), source.topics_by_id, source.log_ends)


def _transactions(source: Input, options: Namespace) -> DataFrame:
    from kproto.spark.jobs.transactions import newest_ts, transactions

    states = source.transaction_states.persist()
    return transactions(states, at=options.at or max(source.end_ts, newest_ts(states) or source.end_ts))


JOBS = {
    "latest": Job(
        "the offset that each group has for each partition at the end of the log",
        _latest,
        ("last_commits",),
        ("group_id", "topic", "partition"),
    ),
    "retention-audit": Job(
        "the offsets.retention.minutes that each group needs when KIP-211 drops the overrides of clients",
        _retention_audit,
        ("commits",),
        ("-recommended_minutes", "-max_override_ms", "group_id"),
        ("retention_minutes",),
        "an override before another commit of the same offset may be gone, and its group: these are lower bounds",
    ),
    "expiry": Job(
        "the offsets that groups are about to lose, and when",
        _expiry,
        ("last_commits", "group_metadata"),
        ("expires_ts", "group_id"),
        ("retention_minutes", "kafka_version"),
    ),
    "what-if": Job(
        "the offsets that would be lost under another retention",
        _what_if,
        ("last_commits", "group_metadata"),
        ("-what_if_lost", "-lost", "what_if_expires_ts", "group_id"),
        ("other_retention", "at", "kafka_version"),
    ),
    "rates": Job(
        "commits by group, topic and hour",
        _rates,
        ("commits", "markers"),
        ("hour", "group_id", "topic"),
        (),
        "a compacted segment has only the last commit of each key: these are lower bounds",
    ),
    "hot-partitions": Job(
        "the load of each partition of the offsets topic, and the group that causes it",
        _hot_partitions,
        ("commits", "offsets_batches"),
        ("-commits", "log_partition"),
        (),
        "a compacted segment has only the last commit of each key: groups with many partitions look hotter",
    ),
    "lag": Job(
        "how far behind each group is; needs the logs of the topics in the same directory",
        _lag,
        _reads_of_lag,
        ("ts", "-lag", "group_id", "topic", "partition"),
        ("moments",),
        "times before the last one may lack rows",
    ),
    "rewinds": Job(
        "the commits that went backwards",
        _rewinds,
        ("commits", "markers"),
        ("ts", "log_partition", "log_offset"),
        (),
        "rewinds in a compacted segment are gone, and from_offset may be older than the real one",
    ),
    "stalled": Job(
        "the offsets that have not moved for a while although there are records to read",
        _stalled,
        ("commits", "log_ends"),
        ("-stalled_minutes", "group_id", "topic", "partition"),
        ("at", "minutes"),
        "an offset may not have moved for longer than shown",
    ),
    "rebalances": Job(
        "when groups were formed, rebalanced, emptied and removed",
        _rebalances,
        ("group_metadata",),
        ("ts", "group_id", "generation"),
        (),
        "a compacted segment has only the last event of each group: these are lower bounds",
    ),
    "check": Job(
        "the rows that break an invariant: offsets beyond the end, generations that fell, missing offsets; "
        "exit code 1 if there are any",
        _check,
        ("commits", "group_metadata", "log_batches"),
        ("invariant", "group_id", "topic", "partition", "log_partition", "log_offset", "value"),
        rows_are_findings=True,
    ),
    "assignments": Job(
        "the owner of each partition or task in each group",
        _assignments,
        None,
        ("group_id", "topic", "topic_id", "partition", "member_id"),
    ),
    "share-partitions": Job(
        "the state of each partition of a share group; needs the logs of __share_group_state in the same directory",
        _share_partitions,
        ("log_ends", "share_states"),
        ("group_id", "topic", "topic_id", "partition"),
    ),
    "transactions": Job(
        "the state of each transactional id; needs the logs of __transaction_state in the same directory",
        _transactions,
        (),
        ("-open_ms", "transactional_id"),
        ("at",),
    ),
}

VERSIONS_ORDER = ("verdict", "software_name", "software_version", "client_id", "api_key", "api_version", "target")
"""The order of the rows of `versions`; `breaks` is the first verdict in alphabetical order."""
