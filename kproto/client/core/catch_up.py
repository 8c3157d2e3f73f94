"""One partition from its (re)assignment until its past is caught up with (KIP-333).

Theory of operation. Two consumers read the partition: the *head*, which is the group's member, from the log's end at
assignment on, and the *catch-up*, which reads all before. What they read waits in a buffer each. The user gets:

    CATCHING_UP   only what the catch-up read, even if that buffer is empty and the head's is full
    DRAINING      what the head has read so far, in order
    NORMAL        what the head reads, directly: the object has no more to say than which checkpoints can go

`settle` moves on. It is called when the user asks for more, for then all that was handed out before counts as
processed, and can be committed: first the end of the catch-up, then the checkpoints go (CK-74). A crash between the two
leaves checkpoints that say less than the committed offset, which the next owner clips.

That the catch-up is over is told by its *position*, not by a record: the last offsets of its range may be gone by
compaction, or be markers and aborted records that no consumer ever sees.

The object does nothing itself: its methods take what has happened, and return what is to be done.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from operator import lt
from typing import Generic, Protocol, TypeVar

from kproto.client.core.ranges import OPEN, Plan, Range, check, clip


class Record(Protocol):
    """What is asked of a record; its length is that of its value in bytes."""

    def offset(self) -> int | None: ...

    def __len__(self) -> int: ...


R = TypeVar("R", bound=Record)


class Phase(Enum):
    """Whose records the user gets."""

    CATCHING_UP = "catching up"
    DRAINING = "draining"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True)
class PauseHead:
    """The head has read as much as may wait: it is to fetch no more."""


@dataclass(frozen=True, slots=True)
class ResumeHead:
    """There is room again."""


@dataclass(frozen=True, slots=True)
class EndCatchUp:
    """The catch-up consumer has no more to do in this partition."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything before this offset was handed out: commit it, if commits are automatic."""

    offset: int


Action = PauseHead | ResumeHead | EndCatchUp | Commit


class CatchUp(Generic[R]):
    """The two buffers of one partition, and the ranges that are left.

    Args:
        plan: with at least one range.
        limit_bytes: how much of the head waits before it is paused; one batch more is accepted.
    """

    def __init__(self, plan: Plan, limit_bytes: int) -> None:
        assert plan.ranges
        check(plan.ranges, plan.head)
        self.phase: Phase = Phase.CATCHING_UP
        self.head: int = plan.head
        self._limit_bytes = limit_bytes
        self._ranges = plan.ranges
        """As planned; `ranges` is what is left of them."""
        self._checkpoints = dict(enumerate(plan.keep))
        """What the checkpoints say, by number, as long as they are there."""
        self._position = plan.ranges[0].start
        """The next offset for the user."""
        self._last: int | None = None
        """The last offset the user got."""
        self._read = self._position
        """The next offset for the catch-up to read."""
        self._caught: deque[R] = deque()
        self._ahead: deque[R] = deque()
        self._ahead_bytes = 0
        self._ahead_read = plan.head
        self._head_paused = False
        self._to_commit = self._position

    # -- what has happened

    def catch_up_read(self, records: Sequence[R]) -> None:
        """The catch-up has fetched these; what belongs to the head is dropped."""
        assert self.phase is Phase.CATCHING_UP
        offsets = _offsets(records, self._read)
        count = bisect_left(offsets, self.head)
        self._caught.extend(records[:count])
        if count < len(offsets):
            self._read = self.head
        elif offsets:
            self._read = offsets[-1] + 1
        self._pass_gap()

    def catch_up_is_at(self, position: int) -> None:
        """The catch-up's position, past what it has fetched: there are no more records before it.

        Also where it goes on after retention has removed what it was to read (CK-86).
        """
        assert self.phase is Phase.CATCHING_UP
        self._read = max(self._read, min(position, self.head))
        self._pass_gap()

    def catch_up_failed(self) -> int:
        """The catch-up consumer is lost with what it had fetched; return where a new one goes on.

        The range stays the same. What was handed out and is not committed would be refetched by a restart at the
        committed offset, only to be dropped: offsets handed out increase within a run (I1).
        """
        assert self.phase is Phase.CATCHING_UP
        self._caught.clear()
        self._read = self._position
        return self._read

    def head_read(self, records: Sequence[R]) -> list[Action]:
        """The head has fetched these, one batch."""
        assert self.phase is not Phase.NORMAL
        assert not self._head_paused, "I5: once there is as much as may wait, no further batch comes"
        offsets = _offsets(records, self._ahead_read)
        if offsets:
            self._ahead_read = offsets[-1] + 1
        self._ahead.extend(records)
        self._ahead_bytes += sum(map(len, records))
        if self._ahead_bytes < self._limit_bytes:
            return []
        self._head_paused = True
        return [PauseHead()]

    def settle(self) -> list[Action]:
        """The user asks for more: move on, if it is time."""
        actions: list[Action] = []
        if self.phase is Phase.CATCHING_UP and self._read >= self.head and not self._caught:
            self.phase = Phase.DRAINING
            self._position = self.head
            self._ranges = ()
            actions += [Commit(self.to_commit()), EndCatchUp()]
        if self.phase is Phase.DRAINING:
            if self._head_paused and self._ahead_bytes <= self._limit_bytes // 2:
                self._head_paused = False
                actions.append(ResumeHead())
            if not self._ahead:
                self.phase = Phase.NORMAL
        return actions

    def take(self, count: int) -> list[R]:
        """Hand out up to so many records."""
        assert self.phase is not Phase.NORMAL
        catching_up = self.phase is Phase.CATCHING_UP
        source = self._caught if catching_up else self._ahead
        records = [source.popleft() for _ in range(min(count, len(source)))]
        offsets = _offsets(records, self._position)
        if not offsets:
            return records
        assert self._last is None or offsets[0] > self._last, "I1: offsets handed out increase"
        assert catching_up or offsets[0] >= self.head
        assert not catching_up or offsets[-1] < self.head, "I3: nothing of the head while ranges are left"
        if not catching_up:
            self._ahead_bytes -= sum(map(len, records))
        self._last = offsets[-1]
        self._advance(offsets[-1] + 1)
        self._pass_gap()
        return records

    def take_caught(self) -> R | None:
        """Hand out one record of the past, if there is one: `take(1)` for who polls record by record."""
        if not self._caught:
            return None
        record = self._caught.popleft()
        offset = record.offset()
        assert offset is not None
        assert self._position <= offset < self.head, "I1, I3"
        self._last = offset
        self._position = offset + 1
        if not self._caught:
            self._pass_gap()
        return record

    def committed(self, offset: int) -> tuple[int, ...]:
        """The group has this offset now; return the numbers of the checkpoints that can go."""
        gone = [number for number, each in self._checkpoints.items() if each.end != OPEN and each.end <= offset]
        if self.phase is not Phase.CATCHING_UP and offset >= self.head:
            gone = list(self._checkpoints)
        for number in gone:
            del self._checkpoints[number]
        return tuple(gone)

    # -- what there is to know

    @property
    def position(self) -> int:
        """The next offset for the user; all before it were handed out, or hold no record."""
        return self._position

    @property
    def read(self) -> int:
        """Where the catch-up reads on."""
        return self._read

    @property
    def ahead_read(self) -> int:
        """Where the head reads on."""
        return self._ahead_read

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What is still to be caught up with (I2)."""
        left = clip(self._ranges, self._position)
        check(left, self.head)
        return left

    @property
    def ready(self) -> int:
        """How many records `take` could hand out."""
        return len(self._caught if self.phase is Phase.CATCHING_UP else self._ahead)

    @property
    def has_read_all(self) -> bool:
        """Whether the catch-up has nothing more to fetch."""
        return self._read >= self.head

    @property
    def is_full(self) -> bool:
        """Whether the head is paused."""
        return self._head_paused

    @property
    def ahead_bytes(self) -> int:
        """How much of the head waits."""
        return self._ahead_bytes

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to do: the past is handed out, and no checkpoint tells of it."""
        return self.phase is Phase.NORMAL and not self._checkpoints

    def to_commit(self) -> int:
        """What an automatic commit says now (CK-70, CK-73)."""
        assert self._position >= self._to_commit, "I4: commits never go back"
        assert self._last is None or self._position > self._last
        assert self.phase is not Phase.CATCHING_UP or self._position <= self.head
        self._to_commit = self._position
        return self._position

    def checkpoints(self) -> dict[int, tuple[Range, int]]:
        """What the checkpoints should say: by number, the range and how far it was read."""
        return {
            number: (each, self._ahead_read if each.end == OPEN else min(max(self._position, each.start), each.end))
            for number, each in self._checkpoints.items()
        }

    def _pass_gap(self) -> None:
        """With nothing to hand out, the user's position is where the catch-up is: between them is no record."""
        if self.phase is Phase.CATCHING_UP and not self._caught:
            self._advance(self._read)

    def _advance(self, position: int) -> None:
        assert position >= self._position, (position, self._position)
        self._position = position


def _offsets(records: Sequence[Record], least: int) -> list[int]:
    """Their offsets, which increase from the least that is possible."""
    offsets = [offset for record in records if (offset := record.offset()) is not None]
    assert len(offsets) == len(records), "a record that was fetched has an offset"
    assert not offsets or offsets[0] >= least, (offsets[0], least)
    assert all(map(lt, offsets, offsets[1:])), "a log's offsets increase"
    return offsets
