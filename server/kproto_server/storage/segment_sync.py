"""Syncing segments, of some logs or of all: what lets the journal forget, and a start after a crash skip."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from kproto_server.storage.checkpoints import RECOVERY_POINTS, LogPosition, LogPositions, write_log_positions
from kproto_server.storage.disk import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.storage.disk import Disk
    from kproto_server.storage.partition_log import LogSync, PartitionLog

START = LogPosition(0)


class RecoveryPoints:
    """The file that says up to where each log is on the disk. It may be written by several threads."""

    def __init__(self, disk: Disk, points: LogPositions) -> None:
        self._disk = disk
        self._points = dict(points)
        self._lock = Lock()

    def note(self, points: LogPositions) -> None:
        """Have these be the least; returns when they survive power loss.

        Raises:
            OSError: what was noted before still is.
        """
        with self._lock:
            raised = {key: max(point, self._points.get(key, START)) for key, point in points.items()}
            merged = self._points | raised
            replace_file(self._disk, RECOVERY_POINTS, write_log_positions(merged))
            self._points = merged

    def forget(self, topic: str) -> None:
        """Note that the logs of a topic are gone.

        Raises:
            OSError: not durably.
        """
        with self._lock:
            self._points = {key: point for key, point in self._points.items() if key[0] != topic}
            replace_file(self._disk, RECOVERY_POINTS, write_log_positions(self._points))


class SegmentSync:
    """Segments that are to be synced, and the recovery points that hold when they are."""

    def __init__(self, disk: Disk, points: RecoveryPoints, works: Iterable[LogSync], cycle: int = 0) -> None:
        """``cycle``: that of the journal which begins with what is not synced by this."""
        self.works = list(works)
        self.cycle = cycle
        self.failure: str | None = None
        """Why it can't be known what is on the disk."""
        self._disk = disk
        self._points = points

    def run(self) -> None:
        """Sync, and note how far each log is synced; a failure is noted. Takes long, and may be run in a thread."""
        try:
            for work in self.works:
                work.run(self._disk)
        except OSError as error:
            self.failure = f"sync failed: {error}"
            return
        with suppress(OSError):  # with older points the next start has more to look at
            self._points.note({(work.log.topic, work.log.partition): work.point for work in self.works})

    def end(self) -> None:
        """Take note of the success, where the logs are used."""
        for work in self.works:
            work.log.end_sync(work)


def begin_syncs(logs: Iterable[PartitionLog]) -> list[LogSync]:
    """Return what is to be synced of some logs."""
    works = [log.begin_sync() for log in logs]
    return [work for work in works if work is not None]
