"""The same world and judge as in `test_crashes`, driven by Hypothesis: what fails comes back as short as it can be."""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.storage.crash_history import KEYS, PARTITIONS
from tests.storage.crash_world import World
from tests.storage.simulated_disk import PowerLost

PARTITION = st.integers(0, PARTITIONS - 1)
DISASTERS = st.randoms(use_true_random=False)
FAULTS = st.sampled_from(["write", "sync", "rename", "create", "sync_directory", "remove"])


class DataDirectory(RuleBasedStateMachine):
    """A data directory in use; it is open whenever a rule begins."""

    @initialize(segment_bytes=st.sampled_from([250, 2000]), journal_bytes=st.sampled_from([1000, 5000]))
    def make(self, segment_bytes: int, journal_bytes: int) -> None:
        self.world = World("fsync", segment_bytes=segment_bytes, journal_bytes=journal_bytes)

    @rule(
        partition=PARTITION,
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True),
        size=st.sampled_from([1, 60, 700]),
        is_tombstone=st.booleans(),
    )
    def commit(self, partition: int, keys: list[bytes], size: int, is_tombstone: bool) -> None:
        self.world.commit(partition, keys, size, is_tombstone=is_tombstone)

    @rule()
    def round(self) -> None:
        self.world.round()

    @rule()
    def begin(self) -> None:
        self.world.begin()

    @rule()
    def sync_and_finish(self) -> None:
        self.world.sync()
        self.world.finish()

    @rule(steps=st.integers(1, 3))
    def sync_segments(self, steps: int) -> None:
        for _ in range(steps):
            self.world.sync_segments()

    @rule(partition=PARTITION)
    def roll(self, partition: int) -> None:
        self.world.roll(partition)

    @rule(partition=PARTITION, steps=st.integers(1, 60), later_ms=st.sampled_from([0, 1000]))
    def compact(self, partition: int, steps: int, later_ms: int) -> None:
        self.world.now_ms += later_ms
        self.world.compact(partition, steps)

    @rule(kind=FAULTS, partition=PARTITION)
    def fail_in_a_round(self, kind: str, partition: int) -> None:
        self.world.disk.fails = lambda operation: operation.kind == kind
        self.world.commit(partition, KEYS[:2], 60)
        self.world.round()
        self.world.disk.fails = lambda operation: False

    @rule(room=st.integers(0, 400), partition=PARTITION)
    def fill_up(self, room: int, partition: int) -> None:
        disk = self.world.disk
        disk.capacity = disk.used + room
        for _ in range(2):
            self.world.commit(partition, KEYS[:3], 60)
            self.world.round()
        disk.capacity = None

    @rule()
    def kill(self) -> None:
        self.world.kill()
        self.world.open()

    @rule(chance=DISASTERS)
    def lose_power(self, chance: random.Random) -> None:
        self.world.crash(chance)
        self.world.open()

    @rule(chance=DISASTERS, operations=st.integers(0, 30), partition=PARTITION, steps=st.integers(0, 60))
    def lose_power_within(self, chance: random.Random, operations: int, partition: int, steps: int) -> None:
        """A round and a compaction, and the power fails somewhere in them, or in the next opening."""
        self.world.disk.operations_left = operations
        try:
            self.world.commit(partition, KEYS[:2], 60)
            self.world.round()
            self.world.compact(partition, steps)
            self.world.kill()
            self.world.disk.operations_left = operations // 3
            self.world.open()
            self.world.disk.operations_left = None
        except PowerLost:
            self.world.crash(chance)
            self.world.open()

    @precondition(lambda self: self.world.log_dir.durable.failed is None)
    @rule()
    def close(self) -> None:
        self.world.close()
        self.world.kill()
        self.world.open()
        assert self.world.log_dir.report == []


DataDirectory.TestCase.settings = settings(stateful_step_count=40)
TestDataDirectory = DataDirectory.TestCase
