"""A partition, its committed offset, its checkpoints and a consumer with a `PartitionCatchUp`: all in memory.

The consumer does what `kproto.client` does: it fetches for consumers 1 and 2 and carries out the actions of the state
machine. It records the delivered offsets.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kproto.client.decisions.buffer1 import RECORD_BYTES, Buffer1, KeyedBuffer1, RangeKeys, size_of
from kproto.client.decisions.catch_up import (
    Commit,
    PartitionCatchUp,
    PauseConsumer1,
    Phase,
    ResumeConsumer1,
    StopConsumer2,
)
from kproto.client.decisions.catch_up_ranges import OPEN_END, OffsetRange, assert_contiguous, plan_catch_up
from kproto.client.decisions.resets import LogBounds, position_out_of_range
from kproto.client.decisions.settings import OnInvalidOffset, Settings

SETTINGS = Settings(on_invalid_offset=OnInvalidOffset.NEAREST, parallel=True)


EPOCH_RECORDS = 10
"""The model's leader changes after so many offsets."""


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A record of the model."""

    at: int
    size_bytes: int = 1
    key_number: int | None = None

    def key(self) -> bytes | None:
        return None if self.key_number is None else b"%d" % self.key_number

    def offset(self) -> int:
        return self.at

    def leader_epoch(self) -> int:
        return self.at // EPOCH_RECORDS

    def __len__(self) -> int:
        return self.size_bytes


@dataclass
class ModelPartition:
    """The state of a partition in the brokers."""

    start: int = 0
    end: int = 0
    records: dict[int, ModelRecord] = field(default_factory=dict)
    """Without records that compaction or retention removed, and without markers."""
    committed: int | None = None
    checkpoints: dict[int, OffsetRange] = field(default_factory=dict)

    @property
    def bounds(self) -> LogBounds:
        return LogBounds(start=self.start, end=self.end)

    def produce(self, count: int, size_bytes: int = 1) -> None:
        """Write records with a few keys; some have none."""
        for offset in range(self.end, self.end + count):
            number = (offset * 7 + size_bytes * offset // 3) % 8
            self.records[offset] = ModelRecord(offset, size_bytes, number or None)
        self.end += count

    def write_marker(self) -> None:
        """Write an offset that no consumer gets."""
        self.end += 1

    def retain_from(self, start: int) -> None:
        self.start = max(self.start, min(start, self.end))
        self._keep({offset for offset in self.records if offset >= self.start})

    def compact(self, offsets: range) -> None:
        self._keep(self.records.keys() - set(offsets))

    def _keep(self, offsets: set[int]) -> None:
        self.records = {offset: record for offset, record in self.records.items() if offset in offsets}

    def fetch(self, position: int, count: int) -> list[ModelRecord]:
        assert self.bounds.contains(position)
        return [self.records[offset] for offset in sorted(self.records) if offset >= position][:count]

    def next_record(self, position: int) -> int:
        """Return the offset of the next record, or the log end without one."""
        return min((offset for offset in self.records if offset >= position), default=self.end)


class ModelConsumer:
    """One run of a member, from its assignment to its crash."""

    def __init__(
        self,
        partition: ModelPartition,
        *,
        merge: bool = True,
        buffer1_limit_bytes: int = 20 * (RECORD_BYTES + 1),
        reads_checkpoints_at_once: bool = True,
        by_key: bool = False,
    ) -> None:
        self.partition = partition
        self.keys: RangeKeys | None = None
        """With order by key: the keys of the range."""
        self._key_position = 0
        self._last_of_key: dict[bytes, int] = {}
        self.awaits_checkpoints = not merge
        """Whether the checkpoints of earlier owners are being read."""
        self.delivered: list[int] = []
        self.buffer1_limit_bytes = buffer1_limit_bytes
        self.largest_batch_bytes = 0
        self.consumer1_is_paused = False
        self.catch_up: PartitionCatchUp[ModelRecord] | None = None
        assert partition.committed is not None
        position = position_out_of_range(SETTINGS, partition.bounds, partition.committed)
        assert position is not None
        plan = plan_catch_up(position=position, bounds=partition.bounds, checkpointed={}, merge=True)
        self.consumer1_position = plan.consumer1_start
        if plan.ranges:
            buffer1: Buffer1[ModelRecord] = Buffer1()
            if by_key:
                self.keys = RangeKeys(position, plan.consumer1_start)
                self._key_position = position
                buffer1 = KeyedBuffer1(self.keys)
            self.catch_up = PartitionCatchUp(plan, buffer1_limit_bytes, buffer1)
        if merge:
            partition.checkpoints = dict(enumerate(plan.checkpointed))
        elif reads_checkpoints_at_once:
            self.read_checkpoints()

    def read_checkpoints(self) -> None:
        """The checkpoints of earlier owners are known: divide the ranges, and write the new checkpoints."""
        if self.awaits_checkpoints:
            self.awaits_checkpoints = False
            earlier, self.partition.checkpoints = self.partition.checkpoints, {}
            if self.catch_up is not None and self.catch_up.phase is not Phase.NORMAL:
                self.catch_up.divide(earlier)
                assert_contiguous(self.catch_up.ranges, self.catch_up.consumer1_start)
                self.write_checkpoints()

    # -- fetches

    def scan_keys(self, count: int) -> None:
        if self.keys is not None and not self.keys.is_complete:
            self._key_position = max(self._key_position, self.partition.start)
            records = self.partition.fetch(self._key_position, count)
            self.keys.add(records)
            self._key_position = records[-1].offset() + 1 if records else self.partition.end
            self.keys.is_at(self._key_position)

    def fetch_by_consumer2(self, count: int) -> None:
        catch_up = self.catch_up
        if catch_up is None or catch_up.phase is not Phase.CATCHING_UP or catch_up.consumer2_has_finished:
            return
        if catch_up.consumer2_position < self.partition.start:
            catch_up.consumer2_is_at(self.partition.start)
            return
        records = self.partition.fetch(catch_up.consumer2_position, count)
        if records:
            catch_up.consumer2_read(records)
        else:
            catch_up.consumer2_is_at(self.partition.end)

    def fetch_by_consumer1(self, count: int) -> list[ModelRecord]:
        """Fetch a batch; return the records that pass straight to the user."""
        if self.consumer1_is_paused:
            return []
        self.consumer1_position = max(self.consumer1_position, self.partition.start)
        records = self.partition.fetch(self.consumer1_position, count)
        if records:
            self.consumer1_position = records[-1].offset() + 1
            self.largest_batch_bytes = max(self.largest_batch_bytes, size_of(records))
        if self.catch_up is None or self.catch_up.phase is Phase.NORMAL:
            return records
        for action in self.catch_up.consumer1_read(records):
            assert action == PauseConsumer1()
            self.consumer1_is_paused = True
        assert self.catch_up.buffer1_bytes <= self.buffer1_limit_bytes + self.largest_batch_bytes, "I5"
        return []

    def fetch_into_buffer1(self, count: int) -> None:
        """Fetch by consumer 1 unless the partition is in normal mode, where `poll` fetches."""
        if self.catch_up is not None and self.catch_up.phase is not Phase.NORMAL:
            self.fetch_by_consumer1(count)

    # -- calls of the user

    def poll(self, count: int) -> list[int]:
        if self.catch_up is not None and self.catch_up.phase is not Phase.NORMAL:
            self._advance(self.catch_up)
        if self.catch_up is None or self.catch_up.phase is Phase.NORMAL:
            records = self.fetch_by_consumer1(count)
        else:
            records = self.catch_up.take(count)
            assert_contiguous(self.catch_up.ranges, self.catch_up.consumer1_start)
        return self._deliver(records)

    def pass_through(self, count: int) -> list[int]:
        """Deliver what consumer 2 fetches, as `consume` does while buffer 2 is empty."""
        catch_up = self.catch_up
        if catch_up is None or catch_up.phase is not Phase.CATCHING_UP or catch_up.current_run():
            return []
        records = []
        if self.partition.start <= catch_up.consumer2_position < catch_up.consumer1_start:
            records = self.partition.fetch(catch_up.consumer2_position, count)
        return self._deliver(catch_up.pass_through(records) if records else [])

    def _deliver(self, records: list[ModelRecord]) -> list[int]:
        offsets = [record.offset() for record in records]
        if self.keys is None:
            assert not offsets or not self.delivered or offsets[0] > self.delivered[-1], "I1"
        for record in records:
            key = record.key()
            if key is not None:
                assert self._last_of_key.get(key, -1) < record.offset(), "I1"
                self._last_of_key[key] = record.offset()
        self.delivered += offsets
        return offsets

    def _advance(self, catch_up: PartitionCatchUp[ModelRecord]) -> None:
        for action in catch_up.advance():
            match action:
                case ResumeConsumer1():
                    self.consumer1_is_paused = False
                case Commit(offset):
                    self._commit(offset)
                case StopConsumer2() | PauseConsumer1():
                    assert action == StopConsumer2()

    @property
    def position(self) -> int:
        """The offset that a commit without arguments commits."""
        if self.catch_up is not None and self.catch_up.phase is not Phase.NORMAL:
            return self.catch_up.offset_to_commit()
        return self.consumer1_position

    def commit(self) -> None:
        self._commit(self.position)

    def _commit(self, offset: int) -> None:
        assert self.partition.committed is not None
        assert offset >= self.partition.committed or offset == self.consumer1_position, "I4"
        self.partition.committed = offset
        if self.catch_up is not None:
            for number in self.catch_up.committed(offset):
                self.partition.checkpoints.pop(number, None)

    def write_checkpoints(self) -> None:
        if self.catch_up is not None and not self.awaits_checkpoints:
            for number, (each, position) in self.catch_up.checkpoints().items():
                assert each.start <= position
                assert each.end == OPEN_END or position <= each.end
                self.partition.checkpoints[number] = each

    def read_all(self) -> None:
        """Poll until no record is left; I6 says that this ends."""
        for _ in range(10 * (self.partition.end + 10)):
            self.fetch_by_consumer2(3)
            self.scan_keys(5)
            self.fetch_into_buffer1(2)
            if not self.poll(4) and self.position == self.partition.end:
                return
            if self.position < self.partition.end and self.partition.next_record(self.position) == self.partition.end:
                return
        raise AssertionError("I6: the catch-up does not end")
