"""Syncing segments, of all logs at once: what a checkpoint is, in the background or in a round's stead."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from kproto_server.storage.checkpoints import RECOVERY_POINTS, write_points
from kproto_server.storage.disk import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kproto_server.storage.disk import Disk
    from kproto_server.storage.partition_log import PartitionLog, SyncWork


class SegmentSync:
    """Segments that are to be synced, and the recovery points that hold when they are."""

    def __init__(
        self, disk: Disk, logs: Mapping[tuple[str, int], PartitionLog], works: Iterable[SyncWork], cycle: int = 0
    ) -> None:
        """``cycle``: that of the journal which begins with what is not synced by this."""
        self.works = list(works)
        self.cycle = cycle
        self.failure: str | None = None
        """Why it can't be known what is on the disk."""
        self._disk = disk
        synced = {work.log: work.point for work in self.works}
        self._points = {key: max(log.synced, synced.get(log, log.synced)) for key, log in logs.items()}

    def run(self) -> None:
        """Sync, and note how far each log is synced; a failure is noted. Takes long, and may be run in a thread."""
        try:
            for work in self.works:
                work.run(self._disk)
        except OSError as error:
            self.failure = f"sync failed: {error}"
        else:
            with suppress(OSError):  # with older points the next start has more to look at
                replace_file(self._disk, RECOVERY_POINTS, write_points(self._points))

    def end(self) -> None:
        """Take note of the success, where the logs are used."""
        for work in self.works:
            work.log.end_sync(work)


def begin_syncs(logs: Iterable[PartitionLog]) -> list[SyncWork]:
    """Return what is to be synced of some logs."""
    works = [log.begin_sync() for log in logs]
    return [work for work in works if work is not None]
