"""Which logs have their active segment open: no more than the process can spare descriptors for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

from kproto_server.storage.disk import NO_DESCRIPTOR_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.storage.partition_log import PartitionLog

T = TypeVar("T")


class OpenSegments:
    """The logs of a data directory whose active segment is open, the one that was opened first at the front.

    A log opens its active segment with the first write, and writes to it without coming here. When another log needs a
    descriptor, the segment at the front is closed; its log opens it again with its next write, which takes 20 us.
    """

    def __init__(self, maximum: int = sys.maxsize) -> None:
        self.maximum: int = maximum
        """How many active segments may be open."""
        self._logs: dict[PartitionLog, None] = {}

    def open(self, log: PartitionLog, action: Callable[[], T]) -> T:
        """Run an action that opens files of a log, which has its active segment open from then on.

        If the process has no descriptors left, segments of other logs are closed until it succeeds.

        Raises:
            OSError: the action has raised it.
        """
        while log not in self._logs and len(self._logs) >= self.maximum and self._close_one(log):
            pass
        while True:
            try:
                opened = action()
            except OSError as error:
                if error.errno not in NO_DESCRIPTOR_ERRORS or not self._close_one(log):
                    raise
            else:
                self._logs[log] = None
                return opened

    def forget(self, log: PartitionLog) -> None:
        """Note that a log has closed its active segment."""
        self._logs.pop(log, None)

    def _close_one(self, wanted: PartitionLog) -> bool:
        """Close the first segment that can be closed; return False if there is none."""
        for log in self._logs:
            if log is not wanted and log.can_close:
                log.close()  # which calls `forget`
                return True
        return False
