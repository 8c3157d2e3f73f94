"""What needs attention in an offsets log now, by rules in a YAML file: for cron, schedulers and monitoring.

A finding is a group, or a partition of the offsets topic, that breaks a rule. The rules are thresholds of jobs:
`expiry`, `stalled`, `rewinds`, `lag` and `hot-partitions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import UsageError
from kproto.spark import jobs
from kproto.spark.commands import RETENTION_MINUTES
from kproto.spark.engine import F
from kproto.spark.times import shifted
from kproto.spark.words import percent, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from kproto.spark.input import Input

READS = ("commits", "group_metadata", "log_batches")
"""What the rules read, for `kproto.spark.input.Input.read_once`."""

LENGTH_MAX = 2**31 - 1
"""The most hours or minutes of a rule: Kafka's own limit for offsets.retention.minutes."""


class RulesError(UsageError):
    """The rules are invalid; the text is one line for the user."""


class Finding(NamedTuple):
    """What breaks a rule."""

    rule: str
    group_id: str | None
    """None: the rule is about a partition of the offsets topic."""
    log_partition: int | None
    value: float
    """What the rule limits: a number of offsets or rewinds, a lag, or a share from 0 to 1."""
    text: str
    """What is wrong, as part of a sentence."""


@dataclass(frozen=True)
class Rules:
    """The thresholds; None: the rule is off."""

    expiring_hours: int | None = None
    """Groups that lose offsets within so many hours, or should have lost them already."""
    stalled_minutes: int | None = None
    """Groups with offsets that have not moved for so long although there are records to read."""
    rewinds_hours: int | None = None
    """Groups that committed a lower offset in so many hours before the time of the question."""
    lag_more_than: int | None = None
    """Groups whose lag, summed over their partitions, is more."""
    hot_partition_share: float | None = None
    """Partitions of the offsets topic with at least this share of all commits."""
    retention_minutes: int = RETENTION_MINUTES
    """offsets.retention.minutes of the brokers."""
    kafka_version: str = "4.4"
    """The version of the brokers, which decides when offsets expire."""
    ignored_groups: tuple[str, ...] = ()
    """Patterns of the ids of groups that no rule is about: ``test-*``."""


DEFAULT = Rules(expiring_hours=24, stalled_minutes=60, rewinds_hours=24)


def read_rules(path: str) -> Rules:
    """Return the rules of a YAML file: a mapping of the fields of `Rules`.

    Raises:
        RulesError: the file is not that.
        OSError: it cannot be read.
    """
    import yaml

    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError) as error:
        raise RulesError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise RulesError(f"{path}: nested too deeply") from None
    if not isinstance(found, dict):
        raise RulesError(f"{path}: not a mapping of rules like lag_more_than: 1000")
    values = {name: _checked(path, name, value) for name, value in found.items()}
    return Rules(**values)


def _checked(path: str, name: object, value: object) -> Any:
    known = _CHECKS.get(name) if isinstance(name, str) else None
    if known is None:
        raise RulesError(f"{path}: no rule {_shown(name)}: use {', '.join(_CHECKS)}")
    kind, check = known
    if not check(value):
        raise RulesError(f"{path}: {name}: {_shown(value)} is not {kind}")
    return tuple(value) if isinstance(value, list) else value


def _shown(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"


def _whole(least: int) -> tuple[str, Callable[[object], bool]]:
    return f"a whole number from {least}", lambda value: type(value) is int and value >= least


def _length(least: int) -> tuple[str, Callable[[object], bool]]:
    kind = f"a whole number from {least} to {LENGTH_MAX}"
    return kind, lambda value: type(value) is int and least <= value <= LENGTH_MAX


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and 0 < value <= 1


def _is_patterns(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_version(value: object) -> bool:
    if not (isinstance(value, str) and value.isascii()):
        return False
    return len(value.split(".")) in (2, 3) and value.replace(".", "").isdigit()


_CHECKS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "expiring_hours": _length(1),
    "stalled_minutes": _length(0),
    "rewinds_hours": _length(1),
    "lag_more_than": _whole(0),
    "hot_partition_share": ("a share from 0 to 1", _is_share),
    "retention_minutes": _length(1),
    "kafka_version": ('a version in quotes, like "2.0"', _is_version),
    "ignored_groups": ("a list of patterns", _is_patterns),
}


def watch(source: Input, rules: Rules, at: datetime) -> list[Finding]:
    """Return what breaks the rules, by rule and then by falling value.

    Args:
        source: an input that has `READS`.
        at: the time of the question, with a time zone.
    """
    found = []
    for name, check in _RULES.items():
        if getattr(rules, name) is not None:
            rows = [one for one in check(source, rules, at) if not _is_ignored(one, rules.ignored_groups)]
            found += sorted(rows, key=lambda one: (-one.value, one.group_id or "", one.log_partition or 0))
    return found


def _is_ignored(finding: Finding, patterns: Iterable[str]) -> bool:
    return finding.group_id is not None and any(fnmatchcase(finding.group_id, pattern) for pattern in patterns)


def _rows(rows: DataFrame) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = rows.toArrow().to_pylist()
    return listed


def _expiring(source: Input, rules: Rules, at: datetime) -> Iterator[Finding]:
    assert rules.expiring_hours is not None
    until = shifted(at, timedelta(hours=rules.expiring_hours))
    steps = jobs.expiry(
        source.commits,
        source.group_metadata,
        retention_minutes=rules.retention_minutes,
        kafka_version=rules.kafka_version,
    )
    lost = steps.where(F.col("expires_ts") <= F.lit(until)).groupBy("group_id").agg(F.sum("offsets_lost").alias("lost"))
    for row in _rows(lost):
        text = f"{plural(row['lost'], 'offset')} expiring within {rules.expiring_hours:,} h"
        yield Finding("expiring", row["group_id"], None, row["lost"], text)


def _stalled(source: Input, rules: Rules, at: datetime) -> Iterator[Finding]:
    assert rules.stalled_minutes is not None
    stalled = jobs.stalled(source.commits, source.log_batches, at=at, minutes=rules.stalled_minutes)
    known = stalled.where(F.col("lag").isNotNull())  # without the log of its topic, an offset may have nothing to read
    counted = known.groupBy("group_id").agg(F.count("*").alias("offsets"), F.max("stalled_minutes").alias("longest"))
    for row in _rows(counted):
        text = f"{plural(row['offsets'], 'offset')} stalled, for {row['longest']:,} min"
        yield Finding("stalled", row["group_id"], None, row["offsets"], text)


def _rewinds(source: Input, rules: Rules, at: datetime) -> Iterator[Finding]:
    assert rules.rewinds_hours is not None
    since = shifted(at, -timedelta(hours=rules.rewinds_hours))
    rewinds = jobs.rewinds(source.commits, source.markers)
    back = rewinds.where((F.col("ts") > F.lit(since)) & (F.col("ts") <= F.lit(at)))
    counted = back.groupBy("group_id").agg(F.count("*").alias("rewinds"), F.max("rewound").alias("farthest"))
    for row in _rows(counted):
        text = f"{plural(row['rewinds'], 'rewind')} in {rules.rewinds_hours:,} h, by up to {row['farthest']:,}"
        yield Finding("rewinds", row["group_id"], None, row["rewinds"], text)


def _lag(source: Input, rules: Rules, at: datetime) -> Iterator[Finding]:
    assert rules.lag_more_than is not None
    lag = jobs.lag(source.commits, source.log_batches, moments=[source.end_ts]).where(F.col("lag").isNotNull())
    for row in _rows(lag.groupBy("group_id").agg(F.sum("lag").alias("lag"))):
        if row["lag"] > rules.lag_more_than:
            yield Finding("lag", row["group_id"], None, row["lag"], f"lag {row['lag']:,}")


def _hot_partitions(source: Input, rules: Rules, at: datetime) -> Iterator[Finding]:
    assert rules.hot_partition_share is not None
    for row in _rows(jobs.hot_partitions(source.commits, source.log_batches)):
        if (row["share"] or 0) >= rules.hot_partition_share:
            top = f"{percent(row['top_share'])} of them of group {row['top_group']}"
            text = f"{percent(row['share'])} of all commits, {top}"
            yield Finding("hot_partition", None, row["log_partition"], row["share"], text)


_RULES: Mapping[str, Callable[[Input, Rules, datetime], Iterator[Finding]]] = {
    "expiring_hours": _expiring,
    "stalled_minutes": _stalled,
    "rewinds_hours": _rewinds,
    "lag_more_than": _lag,
    "hot_partition_share": _hot_partitions,
}
