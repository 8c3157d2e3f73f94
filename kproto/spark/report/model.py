"""What the report tells: plain values, few enough to be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from kproto.spark.inputs import Coverage

Row = dict[str, Any]
"""A row of a job's table, by its columns; times with a time zone."""


@dataclass(frozen=True)
class Rows:
    """The first rows of a table, and how many it has."""

    first: Sequence[Row]
    count: int


@dataclass(frozen=True)
class Histogram:
    """Counts by time, for the most frequent names and all others together."""

    start: datetime
    step: timedelta
    size: int
    series: Mapping[str, Sequence[int]]
    """By name, the greatest first; each of `size` counts."""

    @property
    def end(self) -> datetime:
        return self.start + self.step * self.size


@dataclass(frozen=True)
class Lines:
    """Values by time; None: there is none."""

    moments: Sequence[datetime]
    series: Mapping[str, Sequence[int | None]]


@dataclass(frozen=True)
class Report:
    """All that is on the page."""

    coverage: Coverage
    at: datetime
    retention_minutes: int
    stalled_minutes: int
    groups: int
    offsets: int
    commits: int
    rates: Histogram | None
    """None: there are no commits."""
    audit: Rows
    over: int
    """Groups that asked for more than the retention."""
    recommended_minutes: int
    """What would do for all groups."""
    losses: Histogram | None
    """Offsets lost by time; None: nobody is about to lose any."""
    expiry: Rows
    """Deadlines, the first ones first, of those that have one."""
    lost_soon: int
    """Offsets lost within a day after `at`."""
    kept: int
    """Offsets without a deadline."""
    lag: Lines | None
    """Of groups; None: the logs of the topics are not there."""
    lags: Rows
    """Of groups: group_id, partitions, lag, worst (a partition), worst_lag."""
    lag_unknown: int
    """Offsets of topics whose logs are not there."""
    hot: Rows
    stalled: Rows
    rewinds: Rows
    rebalances: Rows
    """Of groups: group_id, generations, emptied, removed, last_ts."""
