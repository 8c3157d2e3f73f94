"""Loading of offsets and groups from the logs of `__consumer_offsets`, and from the log of OffsetCommit v0."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kproto_server.coordinator.coordinator import V0_PARTITION
from kproto_server.coordinator.loading.load import PartitionLoad
from kproto_server.coordinator.loading.sessions import start_sessions
from kproto_server.persistence.loading import Loading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.loading.repeated_commits import BatchTemplates
    from kproto_server.persistence.loading import Surroundings
    from kproto_server.storage.partition_log import PartitionLog

logger = logging.getLogger("kproto.log")

PROGRESS_INTERVAL_S = 1.0


class OffsetsLoading(Loading[PartitionLoad]):
    """Loads all offsets partitions whose logs are not empty."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        surroundings: Surroundings,
        logs: dict[int, PartitionLog],
        on_loaded: Callable[[], object],
    ) -> None:
        """``on_loaded``: called in the event loop when all partitions are loaded."""
        super().__init__(surroundings, logs, coordinator.unavailable, on_loaded)
        self._coordinator = coordinator
        self._total_bytes = sum(log.size for _, log in self._queue)
        self._done_bytes = 0
        self._count = len(self._queue)
        self._templates: BatchTemplates = {}
        self._start_s = self._reported_s = self._monotonic_s()

    def _load(self, number: int, content: Iterator[bytes]) -> PartitionLoad:
        coordinator = self._coordinator
        offsets = coordinator.v0_offsets if number == V0_PARTITION else coordinator.offsets
        now_ms = coordinator.clock.now_ms()
        return PartitionLoad(coordinator, content, now_ms, offsets=offsets, templates=self._templates)

    def _take(self, number: int, load: PartitionLoad) -> None:
        self._keep_pending(number, load)
        start_sessions(self._coordinator, load.groups, self._coordinator.clock.now_ms())

    def _keep_pending(self, number: int, load: PartitionLoad) -> None:
        """Keep offsets of open transactions, and groups that have nothing else (OC-57)."""
        if load.pending:
            load.pending.note_visible(self._coordinator.offsets.offset_of)
            self._coordinator.pending_offsets[number] = load.pending
        for _, (group_id, _, _), _ in load.pending:
            if self._coordinator.groups.get(group_id) is None:
                self._coordinator.groups.create(group_id, self._coordinator.clock.now_ms())

    def _note_end(self, number: int, load: PartitionLoad) -> None:
        self._done_bytes += load.read_size_bytes
        for record_type, count in sorted(load.skipped.items()):
            logger.warning("partition %d: skipped %d records of unknown type %d", number, count, record_type)
        if not self._queue:
            seconds = self._monotonic_s() - self._start_s
            megabytes = self._total_bytes / 1e6
            logger.info("loaded %d partitions, %.1f MB, in %.2f s", self._count, megabytes, seconds)

    def _note_progress(self, load: PartitionLoad) -> None:
        if self._monotonic_s() - self._reported_s <= PROGRESS_INTERVAL_S:
            return
        self._reported_s = self._monotonic_s()
        percent = 100 * (self._done_bytes + load.read_size_bytes) // max(1, self._total_bytes)
        logger.info("loading offsets: %d %%, %d of %d partitions left", percent, len(self._queue) + 1, self._count)
