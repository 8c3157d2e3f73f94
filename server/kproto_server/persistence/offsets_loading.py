"""Loading offsets and groups from the logs, in slices between rounds of the loop, a partition after the other.

A partition that is not loaded yet says so (LF-30); the others serve, and nobody waits for all of them.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.coordinator import V0_PARTITION
from kproto_server.coordinator.loading.load import PartitionLoad
from kproto_server.coordinator.loading.sessions import start_sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.loading.repeated_commits import BatchTemplates
    from kproto_server.network.event_loop import Host
    from kproto_server.storage.disk import Disk
    from kproto_server.storage.partition_log import PartitionLog

logger = logging.getLogger("kproto.log")

TURN_S = 0.005
"""How long clients may have to wait for the next round of the loop."""
SLICE_SIZE_BYTES = 1 << 20
PROGRESS_S = 1.0
"""How often progress is told."""


class OffsetsLoading:
    """The loads of all offsets partitions that have something in their logs."""

    def __init__(self, coordinator: GroupCoordinator, host: Host, disk: Disk, logs: dict[int, PartitionLog]) -> None:
        self._coordinator = coordinator
        self._host = host
        self._disk = disk
        self._waiting = [(number, log) for number, log in sorted(logs.items()) if log.size]
        self._total_bytes = sum(log.size for _, log in self._waiting)
        self._done_bytes = 0
        self._count = len(self._waiting)
        self._templates: BatchTemplates = {}
        self._current: tuple[int, PartitionLoad] | None = None
        self.then: Callable[[], object] = lambda: None
        """Called when all is loaded."""
        self._started = self._told = time.monotonic()
        for number, _ in self._waiting:
            coordinator.unavailable[number] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def start(self) -> None:
        """Begin, and go on after each round of the loop until all is loaded."""
        if self._waiting:
            self._host.post(self._turn)
        else:
            self._host.post(self.then)

    def run(self) -> None:
        """Load everything before this returns."""
        while self._step():
            pass

    def _turn(self) -> None:
        end = time.monotonic() + TURN_S
        while time.monotonic() < end:
            if not self._step():
                self.then()
                return
        self._host.post(self._turn)

    def _step(self) -> bool:
        """Do a little; return whether there is more."""
        if self._current is None:
            if not self._waiting:
                return False
            number, log = self._waiting.pop(0)
            slices = _slices(self._disk, log)
            coordinator = self._coordinator
            offsets = coordinator.v0_offsets if number == V0_PARTITION else coordinator.offsets
            load = PartitionLoad(
                coordinator, slices, coordinator.clock.now_ms(), offsets=offsets, templates=self._templates
            )
            self._current = number, load
        number, load = self._current
        if load.step():
            self._current = None
            self._loaded(number, load)
        elif time.monotonic() - self._told > PROGRESS_S:
            self._tell(load.read_size_bytes)
        return True

    def _loaded(self, number: int, load: PartitionLoad) -> None:
        coordinator = self._coordinator
        self._done_bytes += load.read_size_bytes
        for record_type, count in sorted(load.skipped.items()):
            logger.warning("partition %d: %d records of unknown type %d are left alone", number, count, record_type)
        if load.failed is not None:
            coordinator.unavailable[number] = ErrorCode.NOT_COORDINATOR
            logger.error("partition %d can't be served: %s", number, load.failed)
        else:
            del coordinator.unavailable[number]
            self._keep_pending(number, load)
            start_sessions(coordinator, load.groups, coordinator.clock.now_ms())
        if not self._waiting:
            seconds = time.monotonic() - self._started
            megabytes = self._total_bytes / 1e6
            logger.info("loaded %d partitions, %.1f MB, in %.2f s", self._count, megabytes, seconds)

    def _keep_pending(self, number: int, load: PartitionLoad) -> None:
        """Offsets that wait for the end of a transaction keep their groups, even if those have nothing else (OC-57)."""
        if load.pending:
            self._coordinator.pending_offsets[number] = load.pending
        for _, (group_id, _, _), _ in load.pending:
            if self._coordinator.groups.get(group_id) is None:
                self._coordinator.groups.create(group_id, self._coordinator.clock.now_ms())

    def _tell(self, of_current: int) -> None:
        self._told = time.monotonic()
        percent = 100 * (self._done_bytes + of_current) // max(1, self._total_bytes)
        logger.info("loading offsets: %d %%, %d of %d partitions left", percent, len(self._waiting) + 1, self._count)


def _slices(disk: Disk, log: PartitionLog) -> Iterator[bytes]:
    """Yield the content of a log."""
    for segment in log.segments():
        file = disk.open(segment.path)
        try:
            position = 0
            while position < segment.size:
                data = file.read_at(position, min(SLICE_SIZE_BYTES, segment.size - position))
                if not data:
                    break
                position += len(data)
                yield data
        finally:
            file.close()
