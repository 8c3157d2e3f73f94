"""The crash harness driven by Hypothesis, which shrinks a failing sequence to a short one."""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kproto_server.testing.simulated_disk import PowerLost
from tests.storage.crash_driver import FAILING_KINDS
from tests.storage.crash_harness import CrashHarness
from tests.storage.crash_model import KEYS, PARTITIONS

PARTITION = st.integers(0, PARTITIONS - 1)
CHANCE = st.randoms(use_true_random=False)


class DataDirectory(RuleBasedStateMachine):
    """A data directory in use; it is open at the beginning of every rule."""

    @initialize(segment_bytes=st.sampled_from([250, 2000]), wal_size_bytes=st.sampled_from([1000, 5000]))
    def create(self, segment_bytes: int, wal_size_bytes: int) -> None:
        self.harness = CrashHarness("fsync", segment_bytes=segment_bytes, wal_size_bytes=wal_size_bytes)

    @rule(
        partition=PARTITION,
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True),
        size=st.sampled_from([1, 60, 700]),
        is_tombstone=st.booleans(),
    )
    def commit(self, partition: int, keys: list[bytes], size: int, is_tombstone: bool) -> None:
        self.harness.commit(partition, keys, size, is_tombstone=is_tombstone)

    @rule()
    def run_group_commits(self) -> None:
        self.harness.run_group_commits()

    @rule()
    def begin(self) -> None:
        self.harness.begin()

    @rule()
    def sync_and_finish(self) -> None:
        self.harness.sync()
        self.harness.finish()

    @rule(steps=st.integers(1, 3))
    def sync_in_background(self, steps: int) -> None:
        for _ in range(steps):
            self.harness.step_background_sync()

    @rule(partition=PARTITION)
    def roll(self, partition: int) -> None:
        self.harness.roll(partition)

    @rule(partition=PARTITION, steps=st.integers(1, 60), elapsed_ms=st.sampled_from([0, 1000]))
    def compact(self, partition: int, steps: int, elapsed_ms: int) -> None:
        self.harness.now_ms += elapsed_ms
        self.harness.compact(partition, steps)

    @rule(kind=st.sampled_from(FAILING_KINDS), partition=PARTITION)
    def fail_in_a_group_commit(self, kind: str, partition: int) -> None:
        self.harness.disk.fails = lambda operation: operation.kind == kind
        self.harness.commit(partition, KEYS[:2], 60)
        self.harness.run_group_commits()
        self.harness.disk.fails = lambda operation: False

    @rule(free_bytes=st.integers(0, 400), partition=PARTITION)
    def fill_up(self, free_bytes: int, partition: int) -> None:
        disk = self.harness.disk
        disk.capacity_bytes = disk.used_bytes + free_bytes
        for _ in range(2):
            self.harness.commit(partition, KEYS[:3], 60)
            self.harness.run_group_commits()
        disk.capacity_bytes = None

    @rule()
    def kill(self) -> None:
        self.harness.kill()
        self.harness.open()

    @rule(chance=CHANCE)
    def lose_power(self, chance: random.Random) -> None:
        self.harness.crash(chance)
        self.harness.open()

    @rule(chance=CHANCE, operations=st.integers(0, 30), partition=PARTITION, steps=st.integers(0, 60))
    def lose_power_within(self, chance: random.Random, operations: int, partition: int, steps: int) -> None:
        """The power fails within a group commit, a compaction, or the next start."""
        self.harness.disk.operations_left = operations
        try:
            self.harness.commit(partition, KEYS[:2], 60)
            self.harness.run_group_commits()
            self.harness.compact(partition, steps)
            self.harness.kill()
            self.harness.disk.operations_left = operations // 3
            self.harness.open()
            self.harness.disk.operations_left = None
        except PowerLost:
            self.harness.crash(chance)
            self.harness.open()

    @precondition(lambda self: self.harness.log_dir.writer.failure is None)
    @rule()
    def close(self) -> None:
        self.harness.close()
        self.harness.kill()
        self.harness.open()
        assert self.harness.log_dir.report == []


DataDirectory.TestCase.settings = settings(stateful_step_count=40)
TestDataDirectory = DataDirectory.TestCase
