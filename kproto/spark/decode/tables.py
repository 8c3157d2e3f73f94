"""What a decoder makes of a block: rows of tables as Arrow batches, and counts.

Times: Kafka's are milliseconds in 64 bits, the tables' are microseconds. What lies outside of the calendar that Spark
and Python have (years 1 to 9999) becomes that calendar's end: a retention of 2^63-1 ms has been seen in the field.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from kproto.spark.decode.counts import Counts

MOMENT_MIN, MOMENT_MAX = -62135596800000, 253402300799999
"""Milliseconds: 0001-01-01 and the end of 9999."""

TXN_STATES = ("none", "pending", "committed", "aborted")
NONE, PENDING, COMMITTED, ABORTED = range(4)
"""Places in `TXN_STATES`."""

Outcomes = "Callable[[Sequence[tuple[int, int]]], list[int]]"
"""Takes ``(producer id, offset)`` of records in transactions, in rising order of offsets; returns a place in
`TXN_STATES` for each."""


class View(Enum):
    """What of a block is made a table."""

    COMMITS = "commits"
    GROUPS = "groups"
    NOTHING = "nothing"
    """Everything is read and checked; only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is asked of a decoder."""

    view: View
    log_partition: int | None
    """None: the directory's name does not tell."""
    outcomes: Callable[[Sequence[tuple[int, int]]], list[int]]
    start_offset: int = 0
    end_offset: int | None = None
    """Rows, and counts, are of records from ``start_offset`` to before ``end_offset``."""
    check_crc: bool = True


class Decoded(NamedTuple):
    """What a block holds."""

    rows: pa.RecordBatch | None
    """Of `View.COMMITS` schema `COMMITS`, of `View.GROUPS` schema `GROUP_METADATA`; None for `View.NOTHING`."""
    counts: Counts


def micros(moment_ms: int) -> int | None:
    """Return microseconds; None for -1, which is Kafka's word for no time."""
    return None if moment_ms == -1 else 1000 * min(max(moment_ms, MOMENT_MIN), MOMENT_MAX)
