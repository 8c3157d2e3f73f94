"""Arithmetic with times that ends at the first and the last time that Python knows.

The timestamps of a log are what clients wrote, up to the end of the year 9999, and `--at` is any time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
EPOCH = datetime.fromtimestamp(0, UTC)


def shifted(moment: datetime, by: timedelta) -> datetime:
    """Return a time that is later, or earlier by a negative length; at most `LAST`, and at least `FIRST`."""
    try:
        return moment + by
    except OverflowError:
        return FIRST if by < timedelta(0) else LAST


def moment_of(microseconds: int) -> datetime:
    """Return the time of a number of microseconds since 1970; as a float it would be rounded beyond the last year."""
    return EPOCH + timedelta(microseconds=microseconds)
