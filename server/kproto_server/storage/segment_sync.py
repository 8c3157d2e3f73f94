"""Segment sync: make the segments of logs durable, so that recovery can skip them and the write-ahead log free them."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from kproto_server.storage.checkpoints import RECOVERY_POINTS, LogPosition, LogPositions, write_log_positions
from kproto_server.storage.disk import replace_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kproto_server.storage.disk import Disk
    from kproto_server.storage.partition_log import LogSync, PartitionLog

LOG_START = LogPosition(0)


class RecoveryPoints:
    """The file ``kproto.recovery``: up to which position each log is durable. Several threads may use it."""

    def __init__(self, disk: Disk, positions: LogPositions) -> None:
        self._disk = disk
        self._positions = dict(positions)
        self._lock = Lock()

    def advance(self, positions: LogPositions) -> None:
        """Move recovery points forward, never back; return when the file is durable.

        Raises:
            OSError: the file has its old content.
        """
        with self._lock:
            # Two syncs of one log can end in either order; the later position stays.
            advanced = {key: max(found, self._positions.get(key, LOG_START)) for key, found in positions.items()}
            merged = self._positions | advanced
            replace_file(self._disk, RECOVERY_POINTS, write_log_positions(merged))
            self._positions = merged

    def forget(self, topics: Collection[str]) -> None:
        """Remove the recovery points of deleted topics; return when the file is durable.

        Raises:
            OSError: the file may have its old content.
        """
        with self._lock:
            self._positions = {key: found for key, found in self._positions.items() if key[0] not in topics}
            replace_file(self._disk, RECOVERY_POINTS, write_log_positions(self._positions))


class SegmentSync:
    """One sync of the segments of some logs.

    The event loop makes it, `run` does the blocking part in any thread, and `LogWriter.end_sync` takes the result in
    the event loop again.
    """

    def __init__(self, disk: Disk, points: RecoveryPoints, log_syncs: Iterable[LogSync], cycle: int = 0) -> None:
        """``cycle``: the cycle of the write-ahead log that began when this sync was made."""
        self.log_syncs: list[LogSync] = list(log_syncs)
        self.cycle = cycle
        self.failure: str | None = None
        """Why it is unknown what is on the disk; None if the sync succeeded."""
        self._disk = disk
        self._points = points

    def run(self) -> None:
        """Sync, and save the recovery points; store a failure instead of raising. Blocks."""
        try:
            for log_sync in self.log_syncs:
                log_sync.run(self._disk)
            if any(log_sync.has_new_files for log_sync in self.log_syncs):
                self._disk.sync_directory("")  # a new log has a new directory
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing is known to be on the disk
            self.failure = f"sync failed: {error}"
            return
        # The file must not name a position before it is durable, so it is written last. If that fails, the segments
        # are durable all the same, and the next start reads more than it has to.
        with suppress(OSError):
            self._points.advance({(sync.log.topic, sync.log.partition): sync.end for sync in self.log_syncs})

    def end(self) -> None:
        """Mark what a successful sync covered as durable, in the logs."""
        for log_sync in self.log_syncs:
            log_sync.log.end_sync(log_sync)


def begin_log_syncs(logs: Iterable[PartitionLog]) -> list[LogSync]:
    """Return the syncs that make all writes to these logs durable."""
    log_syncs = [log.begin_sync() for log in logs]
    return [log_sync for log_sync in log_syncs if log_sync is not None]
