"""Random lives of a data directory: each has some commits, rounds and compactions, and ends in a crash, or in order.

A seed says all of it. The power may fail within any operation of the disk, those of the next opening too, and again
and again; some operations fail, and some lives are lived on a disk that is full.
"""

from __future__ import annotations

import random

from kproto_server.storage.log_writer import Durability
from tests.storage.crash_harness import CrashHarness
from tests.storage.crash_model import KEYS, PARTITIONS, image
from tests.storage.simulated_disk import Operation, PowerLost

LIVES = 8
OPERATIONS_MAX = (20, 60, 200)
STEPS_MAX = (10, 30, 80)


class Driver:
    """Drives one world through its lives."""

    def __init__(self, seed: int, durability: Durability, *, power_fails: bool) -> None:
        """``power_fails``: at times; else the process is killed, always."""
        self.chance = random.Random(seed)  # noqa: S311 - the same each time
        self.harness = CrashHarness(
            durability,
            segment_bytes=self.chance.choice((250, 1000, 4000)),
            wal_size_bytes=self.chance.choice((1000, 3000, 10000)),
            seed=seed,
        )
        self._power_fails = power_fails

    def run(self) -> int:
        """Live; return how many crashes there were. What fails says how it came to that."""
        try:
            for _ in range(LIVES):
                self.live()
        except Exception as error:
            error.add_note("\n".join(self.harness.trace[-60:]))
            raise
        return self.harness.crashes

    def live(self) -> None:
        harness, chance = self.harness, self.chance
        self._arrange()
        try:
            for _ in range(chance.randrange(chance.choice(STEPS_MAX))):
                self.step()
            if chance.random() < 0.15:
                harness.close()
        except PowerLost:
            harness.trace.append("power lost")
        self._end()
        while True:
            self._arrange_opening()
            try:
                harness.open()
            except PowerLost:
                harness.trace.append("power lost while opening")
            except OSError as error:
                harness.trace.append(f"open: {error}")
            else:
                break
            self._end()
        harness.disk.operations_left = None
        if chance.random() < 0.1:
            self._open_again()

    def _end(self) -> None:
        harness, chance = self.harness, self.chance
        if self._power_fails and chance.random() < 0.7:
            harness.crash(chance)
        else:
            harness.kill()
        harness.disk.capacity = None

    def _arrange(self) -> None:
        """Say what will go wrong in this life."""
        disk, chance = self.harness.disk, self.chance
        disk.operations_left = chance.randrange(chance.choice(OPERATIONS_MAX)) if chance.random() < 0.7 else None
        kind = chance.random()
        if kind < 0.15:
            disk.capacity = disk.used + chance.randrange(800)
        elif kind < 0.3:
            self._have_some_fail(chance.choice(("write", "sync", "rename", "create", "sync_directory", "remove")))

    def _have_some_fail(self, kind: str) -> None:
        chance = self.chance
        rate = chance.choice((0.1, 0.5))

        def fails(operation: Operation) -> bool:
            return operation.kind == kind and chance.random() < rate

        self.harness.disk.fails = fails

    def _arrange_opening(self) -> None:
        disk, chance = self.harness.disk, self.chance
        kind = chance.random()
        disk.operations_left = chance.randrange(12) if kind < 0.3 else None
        if 0.3 < kind < 0.35:
            disk.capacity = disk.used + chance.randrange(100)
        elif 0.35 < kind < 0.4:
            self._have_some_fail(chance.choice(("write", "sync", "rename", "create", "sync_directory", "remove")))

    def _open_again(self) -> None:
        """To open it twice is to open it once."""
        harness = self.harness
        before = image(harness.disk)
        harness.kill()
        harness.open()
        assert image(harness.disk) == before
        assert harness.log_dir.report == []

    def step(self) -> None:
        harness, chance = self.harness, self.chance
        kind = chance.random()
        partition = chance.randrange(PARTITIONS)
        if kind < 0.42:
            keys = chance.sample(KEYS, chance.choice((1, 1, 2, 4)))
            size = chance.choice((1, 5, 40, 40, 200, 700))
            harness.commit(partition, keys, size, is_tombstone=chance.random() < 0.15)
        elif kind < 0.5:
            harness.begin()
        elif kind < 0.57:
            harness.sync()
        elif kind < 0.63:
            harness.finish()
        elif kind < 0.7:
            harness.round()
        elif kind < 0.76:
            harness.roll(partition)
        elif kind < 0.79:
            for _ in range(chance.randrange(1, 4)):
                harness.sync_segments()
        elif kind < 0.81:
            harness.now_ms += chance.choice((10, 1000))
        else:
            harness.compact(partition, chance.choice((1, 5, 20, 200)))
