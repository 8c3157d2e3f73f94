"""Run the jobs for the report."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kproto.spark import jobs
from kproto.spark.advice import summarize
from kproto.spark.commands import JOBS, times_of
from kproto.spark.engine import F
from kproto.spark.jobs.common import applied
from kproto.spark.output import ordered
from kproto.spark.report.model import MONDAY, Histogram, Lines, Report, Row, Rows
from kproto.spark.times import EPOCH, moment_of, shifted

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from kproto.spark.input import Input

SERIES_MAX = 5
"""Names with a color of their own; more colors look alike."""
OTHERS = "all others"
BARS_MAX = 72
MOMENTS = 48
STEPS = [
    timedelta(**{unit: count})
    for unit, counts in (
        ("seconds", (1, 2, 5, 10, 15, 30)),
        ("minutes", (1, 2, 5, 10, 15, 30)),
        ("hours", (1, 2, 3, 6, 12)),
        ("days", (1, 2, 7, 14, 28)),
    )
    for count in counts
]
"""Round lengths of a bar."""
MICROSECOND = timedelta(microseconds=1)
SOON = timedelta(days=1)
ROWS_MAX = 300
"""The most rows of a table that the page contains: about 200 kB."""


def build(source: Input, options: Namespace) -> Report:
    """Return the report of a log or of tables.

    Args:
        options: the options `retention_minutes`, `kafka_version`, `at` and `minutes` of the command line.
    """
    commits, groups, batches = map(source.kept, (source.commits, source.group_metadata, source.log_batches))
    coverage = source.coverage
    end = source.end_ts
    at: datetime = options.at or end
    counts = jobs.latest(commits).agg(F.count_distinct("group_id"), F.count("*")).collect()[0]
    minutes = options.retention_minutes
    audit = jobs.retention_audit(commits, retention_minutes=minutes).persist()
    expiry = jobs.expiry(commits, groups, retention_minutes=minutes, kafka_version=options.kafka_version).persist()
    losses = expiry.where(F.col("expires_ts").isNotNull())
    soon = F.sum(F.when(F.col("expires_ts") <= F.lit(shifted(at, SOON)), F.col("offsets_lost")))
    kept = F.sum(F.when(F.col("expires_ts").isNull(), F.col("offsets_left")))
    lost_soon, kept_count = expiry.agg(soon, kept).collect()[0]
    counted = applied(commits).where(~F.col("tombstone"))
    now = jobs.lag(commits, batches, moments=[end]).persist()
    # The past has a row for each of many times, so it is computed only where the logs of the topics are in the input.
    with_log = F.broadcast(batches.select("topic", "partition").distinct())
    known = commits.join(with_log, ["topic", "partition"], "left_semi")
    lag = jobs.lag(known, batches, moments=times_of(source, MOMENTS, end))
    stalled = jobs.stalled(commits, batches, at=at, minutes=options.minutes)
    return Report(
        coverage=coverage,
        at=at,
        is_end=at == end,
        retention_minutes=minutes,
        stalled_minutes=options.minutes,
        groups=counts[0],
        offsets=counts[1],
        commits=counted.count(),
        rates=_histogram(counted, "log_ts", "group_id", F.lit(1)),
        audit=_rows(audit, JOBS["retention-audit"].order, 20),
        advice=summarize(audit, minutes),
        losses=_histogram(losses, "expires_ts", "basis", F.col("offsets_lost")),
        expiry=_rows(losses, JOBS["expiry"].order, 20),
        lost_soon=lost_soon or 0,
        kept=kept_count or 0,
        lag=_lines(lag),
        lags=_rows(_by_group(now), ("-lag", "group_id"), 20),
        lag_unknown=now.where(F.col("lag").isNull()).count(),
        hot=_rows(jobs.hot_partitions(commits, batches), JOBS["hot-partitions"].order, 15),
        stalled=_rows(stalled, JOBS["stalled"].order, 15),
        rewinds=_rows(
            jobs.rewinds(commits, batches if coverage.markers else None), ("-rewound", "ts", "log_offset"), 15
        ),
        rebalances=_rows(_by_events(jobs.rebalances(groups)), ("-rebalanced", "group_id"), 15),
    )


def _rows(rows: DataFrame, order: Sequence[str], limit: int) -> Rows:
    """Return the rows of a table, of which the first ``limit`` ones do not fold."""
    rows = rows.persist()
    found: list[Row] = ordered(rows, order).limit(ROWS_MAX).toArrow().to_pylist()
    return Rows(found[:limit], rows.count() if len(found) == ROWS_MAX else len(found), found[limit:])


def _histogram(rows: DataFrame, time: str, name: str, weight: Column) -> Histogram | None:
    """Return counts by time and by the most frequent names."""
    bounds = rows.agg(F.unix_micros(F.min(time)), F.unix_micros(F.max(time))).collect()[0]
    if bounds[0] is None:
        return None
    first, last = map(moment_of, bounds)
    step = next((step for step in STEPS if (last - first) / step < BARS_MAX), STEPS[-1])
    start = shifted(first, -((first - MONDAY) % step))
    size = (last - start) // step + 1
    micros = F.unix_micros(F.col(time)) - F.lit((start - EPOCH) // MICROSECOND)
    bar = F.floor(micros / (step / MICROSECOND)).alias("bar")
    counted = rows.groupBy(name, bar).agg(F.sum(weight).alias("count")).persist()
    totals = counted.groupBy(name).agg(F.sum("count").alias("total")).orderBy(F.col("total").desc(), name)
    names = [row[0] for row in totals.limit(SERIES_MAX + 1).collect()]
    if len(names) > SERIES_MAX:
        names = [*names[:SERIES_MAX], OTHERS]
    shown = F.when(F.col(name).isin(names), F.col(name)).otherwise(OTHERS)
    series = {one: [0] * size for one in names}
    for row in counted.groupBy(shown.alias("shown"), "bar").agg(F.sum("count").alias("count")).collect():
        series[row["shown"]][row["bar"]] += row["count"]
    return Histogram(start, step, size, series)


def _lines(lag: DataFrame) -> Lines | None:
    """Return the lag over time of the groups that are farthest behind."""
    known = lag.where(F.col("lag").isNotNull())
    totals = known.groupBy("group_id", "ts").agg(F.sum("lag").alias("lag")).persist()
    greatest = totals.groupBy("group_id").agg(F.max("lag").alias("most")).orderBy(F.col("most").desc(), "group_id")
    names = [row[0] for row in greatest.limit(SERIES_MAX).collect()]
    if not names:
        return None
    found: list[Row] = totals.where(F.col("group_id").isin(names)).toArrow().to_pylist()
    moments = sorted({row["ts"] for row in found})
    index = {moment: number for number, moment in enumerate(moments)}
    series: dict[str, list[int | None]] = {name: [None] * len(moments) for name in names}
    for row in found:
        series[row["group_id"]][index[row["ts"]]] = row["lag"]
    return Lines(moments, series)


def _by_group(lag: DataFrame) -> DataFrame:
    worst = F.concat_ws("-", "topic", "partition")
    known = lag.where(F.col("lag").isNotNull())
    return known.groupBy("group_id").agg(
        F.count("*").alias("partitions"),
        F.sum("lag").alias("lag"),
        F.max_by(worst, "lag").alias("worst"),
        F.max("lag").alias("worst_lag"),
    )


def _by_events(events: DataFrame) -> DataFrame:
    kinds = {"rebalanced": "rebalanced", "emptied": "emptied", "removed": "removed"}
    counts = [F.count_if(F.col("event") == kind).alias(name) for name, kind in kinds.items()]
    return events.groupBy("group_id").agg(*counts, F.max("members").alias("members_max"), F.max("ts").alias("last_ts"))
