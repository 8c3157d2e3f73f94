"""The offsets that a killed server must return after a restart, from what its clients know.

The load generator numbers each group's commits, and the offset of partition k is ``number << 20 | k``, so that an
offset identifies its commit. For each group the load generator writes down the number of the last commit that it sent
and of the last one with a response.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

NUMBER_SHIFT = 20
PARTITION_MASK = (1 << NUMBER_SHIFT) - 1
NOTHING = 0
"""The number that stands for no commit."""
Fault = Literal["lost", "torn", "invented"]


def commit_number(offsets: Sequence[int]) -> int | Fault:
    """Return the commit that all partitions of a group have; ``torn`` if they have different ones."""
    numbers = set()
    for nth, offset in enumerate(offsets):
        if offset == -1:
            numbers.add(NOTHING)
        elif offset < 0 or offset & PARTITION_MASK != nth:
            return "invented"
        else:
            numbers.add(offset >> NUMBER_SHIFT)
    return numbers.pop() if len(numbers) == 1 else "torn"


@dataclass(slots=True)
class ExpectedGroup:
    """One group, as its clients know it."""

    stored: int = NOTHING
    """The commit that the last check found."""
    first: int = NOTHING
    """The first commit sent since then, if any; all of them are greater than `stored`."""
    sent: int = NOTHING
    acknowledged: int = NOTHING

    def after_load(self, base: int, sent: int, acknowledged: int) -> None:
        """Record a load whose commits have the numbers after ``base``."""
        self.first = base + 1
        self.sent = sent if sent > base else NOTHING
        self.acknowledged = acknowledged if acknowledged > base else NOTHING

    def check(self, offsets: Sequence[int]) -> Fault | None:
        """Compare with the offsets that a server returns now, and expect at least these from now on."""
        found = commit_number(offsets)
        if isinstance(found, str):
            return found
        fault: Fault | None = None
        if found == self.stored or self.first <= found <= self.sent:
            fault = "lost" if found < self.acknowledged else None
        else:
            fault = "lost" if found < self.stored else "invented"
        self.stored, self.sent, self.acknowledged = found, NOTHING, NOTHING
        return fault


@dataclass(slots=True)
class CrashCounts:
    """Counts over all rounds."""

    kills: int = 0
    acknowledged: int = 0
    """Commits with a response before a kill."""
    pending: int = 0
    """Commits without a response at the moment of a kill: they may be stored or not."""
    compared: int = 0
    """Offsets fetched after a restart."""
    faults: dict[Fault, int] = field(default_factory=lambda: {"lost": 0, "torn": 0, "invented": 0})

    @property
    def fault_count(self) -> int:
        return sum(self.faults.values())


class ExpectedOffsets:
    """All groups of one load."""

    def __init__(self, group_count: int) -> None:
        self.groups = [ExpectedGroup() for _ in range(group_count)]
        self.base = NOTHING
        """A number that no commit has reached: the next load begins after it."""

    def after_load(self, state: Mapping[str, Sequence[int]] | None, counts: CrashCounts) -> None:
        """Record what the load generator wrote down after its server was killed.

        Args:
            state: None if the load generator wrote nothing: then it has sent at most its first commit.
        """
        base, count = self.base, len(self.groups)
        sent = state["sent"] if state else [base + 1] + [base] * (count - 1)
        acknowledged = state["acked"] if state else [base] * count
        for group, last_sent, last_acknowledged in zip(self.groups, sent, acknowledged, strict=True):
            group.after_load(base, last_sent, last_acknowledged)
            counts.acknowledged += last_acknowledged - base
            counts.pending += last_sent - last_acknowledged
        self.base = max(sent)

    def check(self, offsets_of_groups: Iterable[Sequence[int]], counts: CrashCounts) -> None:
        """Compare with the offsets that a restarted server returns."""
        for group, offsets in zip(self.groups, offsets_of_groups, strict=True):
            counts.compared += len(offsets)
            fault = group.check(offsets)
            if fault is not None:
                counts.faults[fault] += 1
