"""Loading of offsets and groups from the logs, one partition after the other, in slices between iterations of the loop.

A partition that is not loaded returns COORDINATOR_LOAD_IN_PROGRESS (LF-30); the loaded ones serve meanwhile.
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
    from kproto_server.persistence.worker_thread import Post
    from kproto_server.storage.disk import Disk
    from kproto_server.storage.partition_log import PartitionLog

logger = logging.getLogger("kproto.log")

TURN_S = 0.005
"""Duration of one turn of loading, for which clients may have to wait."""
SLICE_SIZE_BYTES = 1 << 20
PROGRESS_INTERVAL_S = 1.0


class OffsetsLoading:
    """Loads all offsets partitions whose logs are not empty."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        post: Post,
        disk: Disk,
        logs: dict[int, PartitionLog],
        on_loaded: Callable[[], object],
    ) -> None:
        """``on_loaded``: called in the event loop when all partitions are loaded."""
        self._coordinator = coordinator
        self._post = post
        self._disk = disk
        self._on_loaded = on_loaded
        self._queue = [(number, log) for number, log in sorted(logs.items()) if log.size]
        self._total_bytes = sum(log.size for _, log in self._queue)
        self._done_bytes = 0
        self._count = len(self._queue)
        self._templates: BatchTemplates = {}
        self._current: tuple[int, PartitionLoad] | None = None
        self._start_s = self._reported_s = time.monotonic()
        for number, _ in self._queue:
            coordinator.unavailable[number] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def start(self) -> None:
        """Load in the event loop, a turn in each iteration."""
        self._post(self._turn if self._queue else self._on_loaded)

    def _turn(self) -> None:
        end_s = time.monotonic() + TURN_S
        while time.monotonic() < end_s:
            if not self._step():
                self._on_loaded()
                return
        self._post(self._turn)

    def _step(self) -> bool:
        """Load one slice; return False if all partitions are loaded."""
        if self._current is None:
            if not self._queue:
                return False
            number, log = self._queue.pop(0)
            content = slices(self._disk, log)
            coordinator = self._coordinator
            offsets = coordinator.v0_offsets if number == V0_PARTITION else coordinator.offsets
            load = PartitionLoad(
                coordinator, content, coordinator.clock.now_ms(), offsets=offsets, templates=self._templates
            )
            self._current = number, load
        number, load = self._current
        if load.step():
            self._current = None
            self._finish(number, load)
        elif time.monotonic() - self._reported_s > PROGRESS_INTERVAL_S:
            self._report(load.read_size_bytes)
        return True

    def _finish(self, number: int, load: PartitionLoad) -> None:
        coordinator = self._coordinator
        self._done_bytes += load.read_size_bytes
        for record_type, count in sorted(load.skipped.items()):
            logger.warning("partition %d: skipped %d records of unknown type %d", number, count, record_type)
        if load.failed is not None:
            coordinator.unavailable[number] = ErrorCode.NOT_COORDINATOR
            logger.error("partition %d can't be served: %s", number, load.failed)
        else:
            del coordinator.unavailable[number]
            self._keep_pending(number, load)
            start_sessions(coordinator, load.groups, coordinator.clock.now_ms())
        if not self._queue:
            seconds = time.monotonic() - self._start_s
            megabytes = self._total_bytes / 1e6
            logger.info("loaded %d partitions, %.1f MB, in %.2f s", self._count, megabytes, seconds)

    def _keep_pending(self, number: int, load: PartitionLoad) -> None:
        """Keep offsets of open transactions, and groups that have nothing else (OC-57)."""
        if load.pending:
            load.pending.note_visible(self._coordinator.offsets.offset_of)
            self._coordinator.pending_offsets[number] = load.pending
        for _, (group_id, _, _), _ in load.pending:
            if self._coordinator.groups.get(group_id) is None:
                self._coordinator.groups.create(group_id, self._coordinator.clock.now_ms())

    def _report(self, current_bytes: int) -> None:
        self._reported_s = time.monotonic()
        percent = 100 * (self._done_bytes + current_bytes) // max(1, self._total_bytes)
        logger.info("loading offsets: %d %%, %d of %d partitions left", percent, len(self._queue) + 1, self._count)


def slices(disk: Disk, log: PartitionLog) -> Iterator[bytes]:
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
