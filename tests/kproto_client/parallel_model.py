"""A partition, its group's offset and checkpoints, and a consumer that reads it with a `CatchUp`: all in memory.

The consumer does what the shells do: it fetches for both roles, and carries out what the state machine says. What it
handed out is noted, so that a test can say what must be in there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kproto.client.core.catch_up import CatchUp, Commit, EndCatchUp, PauseHead, Phase, ResumeHead
from kproto.client.core.ranges import OPEN, Range, check, plan
from kproto.client.core.reset import Log, out_of_range
from kproto.client.core.settings import OnInvalidOffset, Settings

SETTINGS = Settings(on_invalid_offset=OnInvalidOffset.NEAREST, parallel=True)


@dataclass(frozen=True, slots=True)
class Produced:
    """A record of the model."""

    at: int
    size: int = 1

    def offset(self) -> int:
        return self.at

    def __len__(self) -> int:
        return self.size


@dataclass
class Partition:
    """What the brokers have of it."""

    start: int = 0
    end: int = 0
    records: dict[int, Produced] = field(default_factory=dict)
    """Without those that a compaction or retention removed, and without markers."""
    committed: int | None = None
    checkpoints: dict[int, Range] = field(default_factory=dict)

    @property
    def log(self) -> Log:
        return Log(start=self.start, end=self.end)

    def produce(self, count: int, size: int = 1) -> None:
        for offset in range(self.end, self.end + count):
            self.records[offset] = Produced(offset, size)
        self.end += count

    def write_marker(self) -> None:
        """An offset that no consumer sees."""
        self.end += 1

    def retain_from(self, start: int) -> None:
        self.start = max(self.start, min(start, self.end))
        self._keep({offset for offset in self.records if offset >= self.start})

    def compact(self, offsets: range) -> None:
        self._keep(self.records.keys() - set(offsets))

    def _keep(self, offsets: set[int]) -> None:
        self.records = {offset: record for offset, record in self.records.items() if offset in offsets}

    def fetch(self, position: int, count: int) -> list[Produced]:
        assert self.log.holds(position)
        return [self.records[offset] for offset in sorted(self.records) if offset >= position][:count]

    def next_record(self, position: int) -> int:
        """Where the next record is; without one, the end."""
        return min((offset for offset in self.records if offset >= position), default=self.end)


class Consumer:
    """One run of a member, from its assignment to its crash."""

    def __init__(self, partition: Partition, *, merge: bool = True, limit_bytes: int = 20) -> None:
        self.partition = partition
        self.delivered: list[int] = []
        self.limit_bytes = limit_bytes
        self.largest_batch = 0
        self.head_paused = False
        self.catch_up: CatchUp[Produced] | None = None
        assert partition.committed is not None
        position = out_of_range(SETTINGS, partition.log, partition.committed)
        assert position is not None
        planned = plan(position=position, log=partition.log, known=partition.checkpoints, merge=merge)
        partition.checkpoints = dict(enumerate(planned.keep))
        self.head = planned.head
        if planned.ranges:
            self.catch_up = CatchUp(planned, limit_bytes)

    # -- what fetchers do

    def fetch_past(self, count: int) -> None:
        """The catch-up consumer fetches a batch."""
        machine = self.catch_up
        if machine is None or machine.phase is not Phase.CATCHING_UP or machine.has_read_all:
            return
        if machine.read < self.partition.start:
            machine.catch_up_is_at(self.partition.start)
            return
        records = self.partition.fetch(machine.read, count)
        if records:
            machine.catch_up_read(records)
        else:
            machine.catch_up_is_at(self.partition.end)

    def fetch_head(self, count: int) -> list[Produced]:
        """The head fetches a batch; what is not the state machine's is the user's."""
        if self.head_paused:
            return []
        self.head = max(self.head, self.partition.start)
        records = self.partition.fetch(self.head, count)
        if records:
            self.head = records[-1].offset() + 1
            self.largest_batch = max(self.largest_batch, sum(len(record) for record in records))
        if self.catch_up is None or self.catch_up.phase is Phase.NORMAL:
            return records
        for action in self.catch_up.head_read(records):
            assert action == PauseHead()
            self.head_paused = True
        assert self.catch_up.ahead_bytes <= self.limit_bytes + self.largest_batch, "I5"
        return []

    # -- what the user does

    def poll(self, count: int) -> list[int]:
        if self._is_normal_after_settling():
            records = self.fetch_head(count)
        else:
            assert self.catch_up is not None
            records = self.catch_up.take(count)
            check(self.catch_up.ranges, self.catch_up.head)
        offsets = [record.offset() for record in records]
        assert not offsets or not self.delivered or offsets[0] > self.delivered[-1], "I1"
        self.delivered += offsets
        return offsets

    @property
    def is_catching_up(self) -> bool:
        return self.catch_up is not None and self.catch_up.phase is not Phase.NORMAL

    def _is_normal_after_settling(self) -> bool:
        if self.catch_up is None or not self.is_catching_up:
            return True
        self._settle(self.catch_up)
        return not self.is_catching_up

    def _settle(self, machine: CatchUp[Produced]) -> None:
        for action in machine.settle():
            match action:
                case ResumeHead():
                    self.head_paused = False
                case Commit(offset):
                    self._commit(offset)
                case EndCatchUp() | PauseHead():
                    assert action == EndCatchUp()

    @property
    def position(self) -> int:
        """What a commit without arguments says."""
        if self.catch_up is not None and self.catch_up.phase is not Phase.NORMAL:
            return self.catch_up.to_commit()
        return self.head

    def commit(self) -> None:
        self._commit(self.position)

    def _commit(self, offset: int) -> None:
        assert self.partition.committed is not None
        assert offset >= self.partition.committed or offset == self.head, "I4"
        self.partition.committed = offset
        if self.catch_up is not None:
            for number in self.catch_up.committed(offset):
                self.partition.checkpoints.pop(number, None)

    def checkpoint(self) -> None:
        """Write what the checkpoints should say."""
        if self.catch_up is not None:
            for number, (each, position) in self.catch_up.checkpoints().items():
                assert each.start <= position
                assert each.end == OPEN or position <= each.end
                self.partition.checkpoints[number] = each

    def read_all(self) -> None:
        """Poll until there is nothing more (I6 says that this ends)."""
        for _ in range(10 * (self.partition.end + 10)):
            self.fetch_past(3)
            self.fetch_head_unless_normal(2)
            if not self.poll(4) and self.position == self.partition.end:
                return
            if self.position < self.partition.end and self.partition.next_record(self.position) == self.partition.end:
                return
        raise AssertionError("I6: a catch-up does not end")

    def fetch_head_unless_normal(self, count: int) -> None:
        """In normal mode `poll` fetches."""
        if self.catch_up is not None and self.catch_up.phase is not Phase.NORMAL:
            self.fetch_head(count)
