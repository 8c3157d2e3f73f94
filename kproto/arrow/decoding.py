"""The input and output of a decoder.

Kafka's timestamps are milliseconds in 64 bits, the tables' are microseconds. A timestamp outside of the calendar of
Spark and Python (years 1 to 9999) becomes the first or last moment of that calendar: clients have sent retentions of
2^63-1 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from kproto.arrow.counts import Counts

TIMESTAMP_MIN_MS, TIMESTAMP_MAX_MS = -62135596800000, 253402300799999
"""0001-01-01, and the last millisecond of 9999."""


class View(Enum):
    """The table to make of a block."""

    COMMITS = "commits"
    GROUPS = "groups"
    RECORDS = "records"
    """Both tables of one decoding."""
    NOTHING = "nothing"
    """No table: everything is decoded, checked and counted."""

    @property
    def has_commits(self) -> bool:
        return self in (View.COMMITS, View.RECORDS)

    @property
    def has_groups(self) -> bool:
        return self in (View.GROUPS, View.RECORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeRequest:
    """What to decode of a block."""

    view: View
    log_partition: int | None
    """The partition of the offsets topic; None: the name of its directory does not say."""
    outcomes: Callable[[Sequence[tuple[int, int]]], list[int]]
    """Returns the index in `TXN_STATES` of each ``(producer id, offset)`` in a transaction; offsets rise."""
    start_offset: int = 0
    end_offset: int | None = None
    """Records from ``start_offset`` to before ``end_offset`` are decoded and counted."""
    check_crc: bool = True
    only_last: bool = False
    """Whether, of the commits in the block with the same key and transaction state, only the last one is returned. The
    others are decoded, checked and counted."""


class Decoded(NamedTuple):
    """The content of a block."""

    rows: pa.RecordBatch | None
    """Rows of `COMMITS` or `GROUP_METADATA`, by the view; None for `View.NOTHING`."""
    counts: Counts
    groups: pa.RecordBatch | None = None
    """For `View.RECORDS`, the rows of `GROUP_METADATA` beside those of `COMMITS`."""


def micros(timestamp_ms: int) -> int | None:
    """Return a timestamp in microseconds; None for -1, which stands for no timestamp in Kafka."""
    return None if timestamp_ms == -1 else 1000 * min(max(timestamp_ms, TIMESTAMP_MIN_MS), TIMESTAMP_MAX_MS)
