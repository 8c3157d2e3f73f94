"""What was read: every batch and record is in one of these numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Counts:
    """Numbers of one block; `add` sums them."""

    batches: int = 0
    records: int = 0
    """All of them: the sum of the numbers below."""
    commits: int = 0
    """Of one offset, in transactions that were aborted too."""
    tombstones: int = 0
    """Of one offset."""
    group_records: int = 0
    """About a group or a member, tombstones too: what table `group_metadata` has."""
    markers: int = 0
    """Ends of transactions."""
    skipped: Counter[int] = field(default_factory=Counter)
    """Records of other types by their number, which no table has."""

    def add(self, other: Counts) -> None:
        """Add what another block has."""
        self.batches += other.batches
        self.records += other.records
        self.commits += other.commits
        self.tombstones += other.tombstones
        self.group_records += other.group_records
        self.markers += other.markers
        self.skipped.update(other.skipped)
