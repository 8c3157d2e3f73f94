"""One partition from its (re)assignment until its past is caught up with (KIP-333).

Theory of operation. Two consumers read the partition: the *head*, which is the group's member, from the log's end at
assignment on, and the *catch-up*, which reads all before. What they read waits in a buffer each. The user gets:

    CATCHING_UP   only what the catch-up read, even if that buffer is empty and the head's is full
    DRAINING      what the head has read so far, in order
    NORMAL        what the head reads, directly: the object has no more to say than which checkpoints can go

`settle` moves on. It is called when the user asks for more, for then all that was handed out before counts as
processed, and can be committed: first the end of the catch-up, then the checkpoints go (CK-74). A crash between the two
leaves checkpoints that say less than the committed offset, which the next owner clips.

What the catch-up read is kept in runs, as it came: a run is looked at by its two ends, and handed out by taking records
off it, so that a record costs next to nothing here. The user's position is where the next record is: before it there is
nothing that was not handed out.

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
        self._read = plan.ranges[0].start
        """The next offset for the catch-up to read."""
        self._caught: deque[list[R]] = deque()
        """Runs, in the log's order; in each the next record is the last."""
        self._ahead: deque[R] = deque()
        self._ahead_bytes = 0
        self._ahead_read = plan.head
        self._head_paused = False
        self._to_commit = self._read

    # -- what has happened

    def catch_up_read(self, records: list[R]) -> None:
        """The catch-up has fetched these; what belongs to the head is dropped. The list is ours from now on."""
        assert self.phase is Phase.CATCHING_UP
        if not records:
            return
        last = _last_offset(records, self._read)
        if last >= self.head:
            del records[bisect_left(records, self.head, key=_offset) :]
        records.reverse()
        self._caught.append(records)
        self._read = min(last + 1, self.head)

    def catch_up_is_at(self, position: int) -> None:
        """The catch-up's position, past what it has fetched: there are no more records before it.

        Also where it goes on after retention has removed what it was to read (CK-86).
        """
        assert self.phase is Phase.CATCHING_UP
        self._read = max(self._read, min(position, self.head))

    def catch_up_failed(self) -> int:
        """The catch-up consumer is lost with what it had fetched; return where a new one goes on.

        The range stays the same. What was handed out and is not committed would be refetched by a restart at the
        committed offset, only to be dropped: offsets handed out increase within a run (I1).
        """
        assert self.phase is Phase.CATCHING_UP
        self._read = self.position
        self._drop_caught()
        return self._read

    def drop(self) -> None:
        """The partition goes, or the user goes elsewhere in it: nothing more is handed out."""
        self._drop_caught()
        self._ahead.clear()

    def head_read(self, records: Sequence[R]) -> list[Action]:
        """The head has fetched these, one batch."""
        assert self.phase is not Phase.NORMAL
        assert not self._head_paused, "I5: once there is as much as may wait, no further batch comes"
        if records:
            self._ahead_read = _last_offset(records, self._ahead_read) + 1
        self._ahead.extend(records)
        self._ahead_bytes += sum(map(len, records))
        if self._ahead_bytes < self._limit_bytes:
            return []
        self._head_paused = True
        return [PauseHead()]

    def settle(self) -> list[Action]:
        """The user asks for more: move on, if it is time."""
        actions: list[Action] = []
        if self.phase is Phase.CATCHING_UP and self._read >= self.head and not self.run():
            self.phase = Phase.DRAINING
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
        if self.phase is Phase.CATCHING_UP:
            return self._take_caught(count)
        assert not self._ranges, "I3: nothing of the head while ranges are left"
        records = [self._ahead.popleft() for _ in range(min(count, len(self._ahead)))]
        self._ahead_bytes -= sum(map(len, records))
        return records

    def run(self) -> list[R]:
        """Some of the past that can be handed out now, the next record last: who takes it off has handed it out.

        The list is good for that until `take`, `drop` or `catch_up_failed`.
        """
        while self._caught and not self._caught[0]:
            self._caught.popleft()
        return self._caught[0] if self._caught else []

    def _take_caught(self, count: int) -> list[R]:
        records: list[R] = []
        while len(records) < count and (run := self.run()):
            wanted = count - len(records)
            if wanted >= len(run):
                self._caught.popleft()
                run.reverse()
                records = records + run if records else run
            else:
                records += run[: -wanted - 1 : -1]
                del run[-wanted:]
        return records

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
        if self.phase is Phase.CATCHING_UP:
            run = self.run()
            return _offset(run[-1]) if run else self._read
        return _offset(self._ahead[0]) if self._ahead else self._ahead_read

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
        left = clip(self._ranges, self.position)
        check(left, self.head)
        return left

    @property
    def ready(self) -> int:
        """How many records `take` could hand out."""
        return sum(map(len, self._caught)) if self.phase is Phase.CATCHING_UP else len(self._ahead)

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
        position = self.position
        assert position >= self._to_commit, "I4: commits never go back"
        assert self.phase is not Phase.CATCHING_UP or position <= self.head
        self._to_commit = position
        return position

    def checkpoints(self) -> dict[int, tuple[Range, int]]:
        """What the checkpoints should say: by number, the range and how far it was read."""
        position = self.position
        return {
            number: (each, self._ahead_read if each.end == OPEN else min(max(position, each.start), each.end))
            for number, each in self._checkpoints.items()
        }

    def _drop_caught(self) -> None:
        for run in self._caught:
            run.clear()  # it may be in the hands of who takes records off it
        self._caught.clear()


def _offset(record: Record) -> int:
    offset = record.offset()
    assert offset is not None, "a record that was fetched has an offset"
    return offset


def _last_offset(records: Sequence[Record], least: int) -> int:
    """Of a run of records, which has not more of them than offsets, from the least that is possible (I1)."""
    first, last = _offset(records[0]), _offset(records[-1])
    assert first >= least, (first, least)
    assert last - first >= len(records) - 1, "a log's offsets increase"
    return last
