"""The content of the report as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kproto.spark.times import shifted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from kproto.spark.advice import Advice
    from kproto.spark.input import Coverage

MONDAY = datetime(1970, 1, 5, tzinfo=UTC)
"""The first Monday of the epoch: steps of whole weeks are counted from it, so that they begin on Mondays."""

Row = dict[str, Any]
"""A row of a job's table, by column; timestamps have a time zone."""


@dataclass(frozen=True)
class Rows:
    """The rows of a table: the first ones, some more that fold, and the number of all rows."""

    first: Sequence[Row]
    count: int
    more: Sequence[Row] = ()


@dataclass(frozen=True)
class Histogram:
    """Counts over time of the most frequent names, and of all others together."""

    start: datetime
    step: timedelta
    size: int
    series: Mapping[str, Sequence[int]]
    """`size` counts of each name, by falling total."""

    @property
    def end(self) -> datetime:
        return shifted(self.start, self.step * self.size)


@dataclass(frozen=True)
class Lines:
    """Values over time; None: there is no value."""

    moments: Sequence[datetime]
    series: Mapping[str, Sequence[int | None]]


@dataclass(frozen=True)
class Report:
    """The content of the page."""

    coverage: Coverage
    at: datetime
    """The time at which the page is valid."""
    is_end: bool
    """Whether that is the end of the log."""
    retention_minutes: int
    stalled_minutes: int
    groups: int
    offsets: int
    commits: int
    rates: Histogram | None
    """None: there are no commits."""
    audit: Rows
    advice: Advice
    losses: Histogram | None
    """Offsets lost over time, by basis; None: no offset has a deadline."""
    expiry: Rows
    """Rows of `GROUP_EXPIRY` with a deadline, the earliest first."""
    lost_soon: int
    """Offsets with a deadline up to a day after `at`."""
    kept: int
    """Offsets without a deadline."""
    lag: Lines | None
    """Lag of groups; None: the logs of the topics are not in the input."""
    lags: Rows
    """Columns: group_id, partitions, lag, worst (a partition), worst_lag."""
    lag_unknown: int
    """Offsets of topics whose logs are not in the input."""
    hot: Rows
    stalled: Rows
    rewinds: Rows
    rebalances: Rows
    """Columns: group_id, rebalanced, emptied, removed, members_max, last_ts."""
