"""Random lives of a data directory: each has commits, group commits and compactions, and ends in a crash or cleanly.

Everything follows from a seed. The power can fail within any operation of the disk, also during the next start, and
again and again. Some operations fail, and some lives run on a full disk.
"""

from __future__ import annotations

import random

from kproto_server.storage.log_writer import Durability
from kproto_server.testing.simulated_disk import Operation, PowerLost
from tests.storage.crash_harness import CrashHarness
from tests.storage.crash_model import KEYS, PARTITIONS, segment_contents

LIVES = 8
OPERATIONS_MAX = (20, 60, 200)
STEPS_MAX = (10, 30, 80)
FAILING_KINDS = ("write", "sync", "rename", "create", "sync_directory", "remove")


class Driver:
    """Runs one harness through its lives."""

    def __init__(self, seed: int, durability: Durability, *, power_fails: bool) -> None:
        """``power_fails``: lives end in power losses or SIGKILL; otherwise in SIGKILL only."""
        self.chance = random.Random(seed)  # noqa: S311 - reproducible
        self.harness = CrashHarness(
            durability,
            segment_bytes=self.chance.choice((250, 1000, 4000)),
            wal_size_bytes=self.chance.choice((1000, 3000, 10000)),
            seed=seed,
        )
        self._power_fails = power_fails

    def run(self) -> int:
        """Run all lives; return the number of crashes. A failure has the trace as a note."""
        try:
            for _ in range(LIVES):
                self.live()
        except Exception as error:
            error.add_note("\n".join(self.harness.trace[-60:]))
            raise
        return self.harness.crash_count

    def live(self) -> None:
        harness, chance = self.harness, self.chance
        self._arrange_failures()
        try:
            for _ in range(chance.randrange(chance.choice(STEPS_MAX))):
                self.step()
            if chance.random() < 0.15:
                harness.close()
        except PowerLost:
            harness.trace.append("power lost")
        self._end()
        while True:
            self._arrange_failures_of_start()
            try:
                harness.open()
            except PowerLost:
                harness.trace.append("power lost during the start")
            except OSError as error:
                harness.trace.append(f"open: {error}")
            else:
                break
            self._end()
        harness.disk.operations_left = None
        if chance.random() < 0.1:
            self._open_twice()

    def _end(self) -> None:
        harness, chance = self.harness, self.chance
        if self._power_fails and chance.random() < 0.7:
            harness.crash(chance)
        else:
            harness.kill()
        harness.disk.capacity_bytes = None

    def _arrange_failures(self) -> None:
        """Choose the failures of this life."""
        disk, chance = self.harness.disk, self.chance
        disk.operations_left = chance.randrange(chance.choice(OPERATIONS_MAX)) if chance.random() < 0.7 else None
        draw = chance.random()
        if draw < 0.15:
            disk.capacity_bytes = disk.used_bytes + chance.randrange(800)
        elif draw < 0.3:
            self._let_operations_fail(chance.choice(FAILING_KINDS))

    def _let_operations_fail(self, kind: str) -> None:
        chance = self.chance
        rate = chance.choice((0.1, 0.5))

        def fails(operation: Operation) -> bool:
            return operation.kind == kind and chance.random() < rate

        self.harness.disk.fails = fails

    def _arrange_failures_of_start(self) -> None:
        disk, chance = self.harness.disk, self.chance
        draw = chance.random()
        disk.operations_left = chance.randrange(12) if draw < 0.3 else None
        if 0.3 < draw < 0.35:
            disk.capacity_bytes = disk.used_bytes + chance.randrange(100)
        elif 0.35 < draw < 0.4:
            self._let_operations_fail(chance.choice(FAILING_KINDS))

    def _open_twice(self) -> None:
        """Check that a second start changes nothing."""
        harness = self.harness
        before = segment_contents(harness.disk)
        harness.kill()
        harness.open()
        assert segment_contents(harness.disk) == before
        assert harness.log_dir.report == []

    def step(self) -> None:
        harness, chance = self.harness, self.chance
        draw = chance.random()
        partition = chance.randrange(PARTITIONS)
        if draw < 0.42:
            keys = chance.sample(KEYS, chance.choice((1, 1, 2, 4)))
            size = chance.choice((1, 5, 40, 40, 200, 700))
            harness.commit(partition, keys, size, is_tombstone=chance.random() < 0.15)
        elif draw < 0.5:
            harness.begin()
        elif draw < 0.57:
            harness.sync()
        elif draw < 0.63:
            harness.finish()
        elif draw < 0.7:
            harness.run_group_commits()
        elif draw < 0.76:
            harness.roll(partition)
        elif draw < 0.79:
            for _ in range(chance.randrange(1, 4)):
                harness.step_background_sync()
        elif draw < 0.81:
            harness.now_ms += chance.choice((10, 1000))
        else:
            harness.compact(partition, chance.choice((1, 5, 20, 200)))
