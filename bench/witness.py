"""What the clients of a load know, and what a server that was killed may therefore say.

The load generator numbers each group's commits, and its k-th partition's offset is ``number << 20 | k``: so an offset
tells which commit it is from. It writes down, for each group, the number of the last commit that it sent and of the
last that was answered.
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


def number_of(offsets: Sequence[int]) -> int | Fault:
    """The commit that all partitions of a group hold; ``torn`` if they hold different ones."""
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
class Known:
    """One group, as its clients see it."""

    stored: int = NOTHING
    """The commit that was last read back."""
    first: int = NOTHING
    """The first that was sent since, if any; all are greater than `stored`."""
    sent: int = NOTHING
    answered: int = NOTHING

    def load(self, base: int, sent: int, answered: int) -> None:
        """Take note of a load whose commits were numbered from the one after ``base`` on."""
        self.first = base + 1
        self.sent = sent if sent > base else NOTHING
        self.answered = answered if answered > base else NOTHING

    def read(self, offsets: Sequence[int]) -> Fault | None:
        """Compare with what a server says now, and take that over: it must never again say less."""
        found = number_of(offsets)
        if isinstance(found, str):
            return found
        fault: Fault | None = None
        if found == self.stored or self.first <= found <= self.sent:
            fault = "lost" if found < self.answered else None
        else:
            fault = "lost" if found < self.stored else "invented"
        self.stored, self.sent, self.answered = found, NOTHING, NOTHING
        return fault


@dataclass(slots=True)
class Tally:
    """What was counted over all rounds."""

    kills: int = 0
    answered: int = 0
    """Commits answered before a kill."""
    unanswered: int = 0
    """Commits that were on their way when the server was killed: they may be there or not."""
    compared: int = 0
    """Offsets fetched after a restart."""
    faults: dict[Fault, int] = field(default_factory=lambda: {"lost": 0, "torn": 0, "invented": 0})

    @property
    def fault_count(self) -> int:
        return sum(self.faults.values())


class Witness:
    """All groups of one load."""

    def __init__(self, group_count: int) -> None:
        self.groups = [Known() for _ in range(group_count)]
        self.base = NOTHING
        """A number that no commit has reached: the next load begins after it."""

    def heard(self, state: Mapping[str, Sequence[int]] | None, tally: Tally) -> None:
        """Take over what the load generator wrote down when its server was gone.

        Args:
            state: None if it did not come to write anything: then it has sent its first commit at most.
        """
        base, count = self.base, len(self.groups)
        sent = state["sent"] if state else [base + 1] + [base] * (count - 1)
        answered = state["acked"] if state else [base] * count
        for known, last_sent, last_answered in zip(self.groups, sent, answered, strict=True):
            known.load(base, last_sent, last_answered)
            tally.answered += last_answered - base
            tally.unanswered += last_sent - last_answered
        self.base = max(sent)

    def read(self, offsets_of_groups: Iterable[Sequence[int]], tally: Tally) -> None:
        """Compare with what a restarted server says."""
        for known, offsets in zip(self.groups, offsets_of_groups, strict=True):
            tally.compared += len(offsets)
            fault = known.read(offsets)
            if fault is not None:
                tally.faults[fault] += 1
