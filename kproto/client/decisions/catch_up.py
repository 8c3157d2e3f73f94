"""The catch-up of one partition: a state machine from the assignment to the end of its catch-up ranges (KIP-333).

Theory of operation
-------------------
Two consumers read the partition, each into its own buffer:

* *Consumer 1* is the member of the group. At the assignment it starts at the log end, the offset `consumer1_start`,
  and reads on from there into *buffer 1*.
* *Consumer 2* belongs to no group. It reads the catch-up ranges, from the committed offset up to `consumer1_start`,
  into *buffer 2*.

The phase says which buffer `poll()` delivers from:

    CATCHING_UP        Only buffer 2, even while buffer 2 is empty and buffer 1 is full: offsets keep their order. With
                       order by key also the records of buffer 1 whose keys are not left in the range; they alternate
                       with those of buffer 2.
    DRAINING_BUFFER1   Buffer 1. Consumer 2 has finished, consumer 1 still reads into buffer 1.
    NORMAL             Neither buffer: the records of consumer 1 pass straight to the user. The object only waits for a
                       commit that covers its checkpoints.

`advance` changes the phase. The caller runs it when the user asks for more records, because at that moment all
delivered records count as processed and can be committed.

Order at the switch. At the end of CATCHING_UP, the offset `consumer1_start` is committed first and the checkpoints are
deleted after that (CK-74). A crash in between leaves checkpoints of offsets that are already committed; the next owner
clips them (CK-85). The opposite order could lose the record of a range that is not committed.

End of the catch-up. The *position* of consumer 2 decides, not an offset of a record: the last offsets of a range may be
compacted away, or be transaction markers and aborted records, which no consumer ever gets (CK-61).

Buffer 2 holds runs: lists of records as consumer 2 fetched them. Costs per record matter, as catch-up has to be as fast
as a plain consumer (CK-92). So a run is checked at its two ends only, and `current_run` lends it to the caller, which
delivers a record by popping it from the list. The user's position is therefore derived from the next record in the run
instead of being counted per record.

Invariants, asserted in the methods:

    I1  Delivered offsets strictly increase; with order by key, those of a key.
    I2  The catch-up ranges are sorted, disjoint and contiguous, and end at `consumer1_start`.
    I3  Buffer 1 is delivered only when no catch-up range, or with order by key no record of the key in it, is left.
    I4  The offset to commit never decreases and never passes the user's position.
    I5  Buffer 1 holds at most its limit plus one batch.
    I6  With an available broker, the catch-up ends: consumer 2 only moves forward in a finite range.

The object performs no I/O: each method takes an event and returns the actions for the caller.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic

from kproto.client.decisions.buffer1 import Buffer1, FetchedRecord, R, offset_of
from kproto.client.decisions.catch_up_ranges import (
    OPEN_END,
    CatchUpPlan,
    OffsetRange,
    assert_contiguous,
    clip,
    plan_catch_up,
)
from kproto.client.decisions.resets import LogBounds


class Phase(Enum):
    """The source of delivered records."""

    CATCHING_UP = "catching up"
    DRAINING_BUFFER1 = "draining buffer 1"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True)
class PauseConsumer1:
    """Buffer 1 is full: consumer 1 stops fetching the partition."""


@dataclass(frozen=True, slots=True)
class ResumeConsumer1:
    """Buffer 1 has room again."""


@dataclass(frozen=True, slots=True)
class StopConsumer2:
    """Consumer 2 has read all ranges of the partition."""


@dataclass(frozen=True, slots=True)
class Commit:
    """All records before this offset are delivered: commit the offset if commits are automatic."""

    offset: int


Action = PauseConsumer1 | ResumeConsumer1 | StopConsumer2 | Commit


class PartitionCatchUp(Generic[R]):
    """The two buffers of one partition and the ranges that are left.

    Args:
        plan: a plan with at least one range.
        buffer1_limit_bytes: the size of buffer 1 at which consumer 1 is paused.
        buffer1: decides which records of consumer 1 wait; by default all.
    """

    def __init__(self, plan: CatchUpPlan, buffer1_limit_bytes: int, buffer1: Buffer1[R] | None = None) -> None:
        assert plan.ranges
        assert_contiguous(plan.ranges, plan.consumer1_start)
        self.phase: Phase = Phase.CATCHING_UP
        self.consumer1_start: int = plan.consumer1_start
        self._ranges = plan.ranges
        """The planned ranges; the property `ranges` clips them to the user's position."""
        self._checkpointed = dict(enumerate(plan.checkpointed))
        """The existing checkpoints by number."""
        self.committed_offset: int = -1

        self._buffer2: deque[list[R]] = deque()
        """Runs in the order of the log. Within a run the next record is the LAST element, for `list.pop`."""
        self._consumer2_position = plan.ranges[0].start
        self._leader_epochs: dict[Phase, int | None] = {}
        """Of the last record that the consumer of each phase has read."""

        self._buffer1: Buffer1[R] = Buffer1() if buffer1 is None else buffer1
        self._buffer1_limit_bytes = buffer1_limit_bytes
        self._consumer1_position = plan.consumer1_start
        self._consumer1_is_paused = False

        self._odd_record_is_of_range = False
        self._last_to_commit = self._consumer2_position
        """For invariant I4."""

    # -- events

    def consumer2_read(self, records: list[R]) -> None:
        """Append fetched records to buffer 2; the object owns the list from now on."""
        if records and self.pass_through(records):
            records.reverse()
            self._buffer2.append(records)

    def pass_through(self, records: list[R]) -> list[R]:
        """Note records that consumer 2 has read, and return those of the ranges; the caller delivers all of them.

        Buffer 2 is empty, or takes them.
        """
        assert self.phase is Phase.CATCHING_UP
        last = _last_offset(records, self._consumer2_position)
        self._leader_epochs[Phase.CATCHING_UP] = records[-1].leader_epoch()
        # A fetch may cross the end of the last range. The records from there on belong to consumer 1 (CK-66).
        if last >= self.consumer1_start:
            del records[bisect_left(records, self.consumer1_start, key=offset_of) :]
        self._consumer2_position = min(last + 1, self.consumer1_start)
        return records

    def consumer2_is_at(self, position: int) -> None:
        """Move consumer 2 forward without records.

        Either the offsets before `position` hold no visible record (compaction, markers, aborted records), or
        retention has removed them and the offset reset continues there (CK-86).
        """
        assert self.phase is Phase.CATCHING_UP
        self._consumer2_position = max(self._consumer2_position, min(position, self.consumer1_start))

    def consumer2_failed(self) -> int:
        """Drop buffer 2, as consumer 2 is lost; return the offset where the next consumer 2 starts.

        The range stays the same (CK-81). The next consumer 2 starts at the user's position, not at the committed
        offset: delivered records would only be fetched again to be dropped (I1).
        """
        assert self.phase is Phase.CATCHING_UP
        self._consumer2_position = self.position
        self._drop_buffer2()
        return self._consumer2_position

    def divide(self, checkpointed: Mapping[int, OffsetRange]) -> None:
        """Divide the rest of the ranges where earlier owners did (CK-82)."""
        if self.phase is Phase.CATCHING_UP and self.position < self.consumer1_start:
            plan = plan_catch_up(
                position=self.position,
                bounds=LogBounds(start=self.position, end=self.consumer1_start),
                checkpointed=checkpointed,
                merge=False,
            )
            self._ranges = plan.ranges
            self._checkpointed = dict(enumerate(plan.checkpointed))

    def drop_buffers(self) -> None:
        """Deliver nothing more: the partition is revoked, or the user seeks in it."""
        self._drop_buffer2()
        self._buffer1.clear()

    def consumer1_read(self, records: Sequence[R]) -> list[Action]:
        """Append fetched records to buffer 1. A paused consumer 1 reads at most the rest of its batch."""
        assert self.phase is not Phase.NORMAL
        if records:
            self._consumer1_position = _last_offset(records, self._consumer1_position) + 1
            self._leader_epochs[Phase.DRAINING_BUFFER1] = records[-1].leader_epoch()
        self._buffer1.add(records)
        if self._consumer1_is_paused or self._buffer1.size_bytes < self._buffer1_limit_bytes:
            return []
        self._consumer1_is_paused = True
        return [PauseConsumer1()]

    def advance(self) -> list[Action]:
        """Enter the next phase if the current one has ended; the user asks for more records."""
        actions: list[Action] = []
        # Both conditions: consumer 2 may have read all records while the user has not received all of them.
        if self.phase is Phase.CATCHING_UP and self.consumer2_has_finished and not self.current_run():
            self.phase = Phase.DRAINING_BUFFER1
            self._ranges = ()
            actions += [Commit(self.offset_to_commit()), StopConsumer2()]
        # Consumer 1 resumes at half of the limit, not at the limit: otherwise each delivered record would resume it and
        # each fetched batch would pause it again.
        if self._consumer1_is_paused and self._buffer1.size_bytes <= self._buffer1_limit_bytes // 2:
            self._consumer1_is_paused = False
            actions.append(ResumeConsumer1())
        if self.phase is Phase.DRAINING_BUFFER1 and self._buffer1.first() is None:
            self.phase = Phase.NORMAL
        return actions

    def take(self, count: int) -> list[R]:
        """Return up to `count` records for the user and remove them from their buffer (CK-64)."""
        assert self.phase is not Phase.NORMAL
        if self.phase is not Phase.CATCHING_UP:
            assert not self._ranges, "I3: catch-up ranges are left"
            return self._buffer1.take(count)
        if not self.has_free_record:
            return self._take_from_buffer2(count)
        # Records of the range first: a commit within the batch covers the records before it. Half of the records are of
        # the range, of an odd number every other time one more.
        self._odd_record_is_of_range = not self._odd_record_is_of_range
        records = self._take_from_buffer2((count + self._odd_record_is_of_range) // 2)
        return records + self._buffer1.take_free(count - len(records), self.position)

    def current_run(self) -> list[R]:
        """Return the next run of buffer 2, next record last. Popping a record from the list delivers the record.

        The list is valid until `take`, `drop_buffers` or `consumer2_failed`.
        """
        while self._buffer2 and not self._buffer2[0]:
            self._buffer2.popleft()
        return self._buffer2[0] if self._buffer2 else []

    def _take_from_buffer2(self, count: int) -> list[R]:
        records: list[R] = []
        while len(records) < count and (run := self.current_run()):
            wanted = count - len(records)
            if wanted >= len(run):
                # The common case of `consume`: the whole run goes to the user without a copy.
                self._buffer2.popleft()
                run.reverse()
                records = records + run if records else run
            else:
                records += run[: -wanted - 1 : -1]
                del run[-wanted:]
        return records

    def committed(self, offset: int) -> tuple[int, ...]:
        """Note a successful commit; return the numbers of the checkpoints to delete."""
        self.committed_offset = max(self.committed_offset, offset)
        numbers = [number for number, each in self._checkpointed.items() if each.end != OPEN_END and each.end <= offset]
        # The open range of consumer 1 ends with the catch-up: from here on the committed offset says enough.
        if self.phase is not Phase.CATCHING_UP and offset >= self.consumer1_start:
            numbers = list(self._checkpointed)
        for number in numbers:
            del self._checkpointed[number]
        return tuple(numbers)

    # -- queries

    @property
    def position(self) -> int:
        """The user's position: all records before this offset are delivered, with order by key also later ones."""
        if self.phase is Phase.CATCHING_UP:
            run = self.current_run()
            return offset_of(run[-1]) if run else self._consumer2_position
        waiting = self._buffer1.first()
        return self._consumer1_position if waiting is None else offset_of(waiting)

    @property
    def leader_epoch(self) -> int | None:
        """The leader epoch that belongs to the position: of the next record, else of the last one that was read.

        A commit keeps the epoch. If the log is truncated before the next record, the epoch ends there at the latest, so
        the next owner detects it (KIP-320).
        """
        if self.phase is Phase.CATCHING_UP:
            run = self.current_run()
            return run[-1].leader_epoch() if run else self._leader_epochs.get(Phase.CATCHING_UP)
        waiting = self._buffer1.first()
        if waiting is not None:
            return waiting.leader_epoch()
        return self._leader_epochs.get(Phase.DRAINING_BUFFER1, self._leader_epochs.get(Phase.CATCHING_UP))

    @property
    def consumer1_position(self) -> int:
        """The next offset that consumer 1 fetches."""
        return self._consumer1_position

    @property
    def consumer2_position(self) -> int:
        """The next offset that consumer 2 fetches."""
        return self._consumer2_position

    @property
    def consumer2_has_finished(self) -> bool:
        """Whether consumer 2 has read all ranges."""
        return self._consumer2_position >= self.consumer1_start

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """The catch-up ranges from the user's position on (I2)."""
        left = clip(self._ranges, self.position)
        assert_contiguous(left, self.consumer1_start)
        return left

    @property
    def buffer1_bytes(self) -> int:
        """Size of the record values in buffer 1."""
        return self._buffer1.size_bytes

    @property
    def has_free_record(self) -> bool:
        """Whether a record of buffer 1 may be delivered before the range is."""
        if self._buffer1.all_wait:
            return False
        return self.phase is Phase.CATCHING_UP and self._buffer1.has_free(self.position)

    @property
    def waits_for_consumer2(self) -> bool:
        """Whether there is nothing to deliver and nothing to decide until consumer 2 has read more."""
        has_work = self._consumer1_is_paused or not self._buffer1.all_wait or self.consumer2_has_finished
        return self.phase is Phase.CATCHING_UP and not self._buffer2 and not has_work

    @property
    def buffer1_is_full(self) -> bool:
        """Whether consumer 1 is paused."""
        return self._consumer1_is_paused

    @property
    def is_finished(self) -> bool:
        """Whether the partition is in normal mode and has no checkpoint left."""
        return self.phase is Phase.NORMAL and not self._checkpointed

    def offset_to_commit(self) -> int:
        """Return the offset that an automatic commit commits now (CK-70, CK-73)."""
        position = self.position
        assert position >= self._last_to_commit, "I4: commits never go back"
        assert self.phase is not Phase.CATCHING_UP or position <= self.consumer1_start
        self._last_to_commit = position
        return position

    def checkpoints(self) -> dict[int, tuple[OffsetRange, int]]:
        """Return the current content of the checkpoints: by number, the range and the position in the range."""
        position = self.position
        return {
            number: (
                each,
                self._consumer1_position if each.end == OPEN_END else min(max(position, each.start), each.end),
            )
            for number, each in self._checkpointed.items()
        }

    def _drop_buffer2(self) -> None:
        for run in self._buffer2:
            run.clear()  # the caller of `current_run` may still hold the list
        self._buffer2.clear()


def _last_offset(records: Sequence[FetchedRecord], expected_min: int) -> int:
    """Return the last offset of a run; assert by its two ends that the offsets can increase (I1)."""
    first, last = records[0].offset(), records[-1].offset()
    assert first is not None, "a fetched record has an offset"
    assert last is not None
    assert first >= expected_min, (first, expected_min)
    assert last - first >= len(records) - 1, "offsets in a log increase"
    return last
