"""The size of a table of committed offsets, as the benches on memory fill it."""

from __future__ import annotations

from typing import NamedTuple


class GroupShape(NamedTuple):
    """Groups, and the topics and partitions of each."""

    groups: int
    topics: int
    partitions: int

    @property
    def entries(self) -> int:
        return self.groups * self.topics * self.partitions

    def __str__(self) -> str:
        return f"{self.groups:,} groups x {self.topics} topics x {self.partitions} partitions"
