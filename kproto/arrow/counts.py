"""Counts of decoded records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Counts:
    """Numbers of one block; `add` sums them up. Each record is in exactly one of the numbers below `records`."""

    batches: int = 0
    records: int = 0
    """All records: the sum of the numbers below."""
    commits: int = 0
    """Commits of one offset, also in aborted transactions."""
    tombstones: int = 0
    """Tombstones of one offset."""
    group_records: int = 0
    """Records about a group or a member, with tombstones: the rows of table `group_metadata`."""
    markers: int = 0
    """End markers of transactions."""
    skipped: Counter[int] = field(default_factory=Counter)
    """Records of types that no table has, by type number."""
    earliest_ms: int | None = None
    """The lowest of the batches' maximum timestamps; None: no batch has a timestamp."""
    latest_ms: int | None = None
    """The highest of them."""

    def add(self, other: Counts) -> None:
        """Add the numbers of another block."""
        self.batches += other.batches
        self.records += other.records
        self.commits += other.commits
        self.tombstones += other.tombstones
        self.group_records += other.group_records
        self.markers += other.markers
        self.skipped.update(other.skipped)
        for timestamp in (other.earliest_ms, other.latest_ms):
            if timestamp is not None:
                self.saw(timestamp)

    def saw(self, timestamp: int) -> None:
        """Count the maximum timestamp of a batch, in milliseconds; negative ones stand for no timestamp."""
        if timestamp >= 0:
            self.earliest_ms = timestamp if self.earliest_ms is None else min(self.earliest_ms, timestamp)
            self.latest_ms = timestamp if self.latest_ms is None else max(self.latest_ms, timestamp)
