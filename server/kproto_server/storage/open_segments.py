"""Which logs have their active segment open: no more than the process can spare descriptors for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, TypeVar

from kproto_server.storage.disk import NO_DESCRIPTOR_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class WrittenLog(Protocol):
    """What is known of a `PartitionLog` here."""

    @property
    def can_close(self) -> bool:
        """Whether the active segment may be closed before the next write."""

    def close(self) -> None:
        """Close the active segment, and call `OpenSegments.forget`."""


class OpenSegments:
    """The logs of a data directory whose active segment is open, the one that was opened first at the front.

    A log opens its active segment with the first write, and writes to it without coming here. When a descriptor is
    needed elsewhere, the segment at the front is closed; its log opens it again with its next write, which takes 20 us.
    """

    def __init__(self, maximum: int = sys.maxsize) -> None:
        """``maximum``: see `limit`."""
        self._maximum = maximum
        self._logs: dict[WrittenLog, None] = {}

    def limit(self, maximum: int) -> None:
        """Have no more active segments open than this from now on."""
        self._maximum = maximum
        self._close_down_to(maximum)

    def open(self, log: WrittenLog, action: Callable[[], T]) -> T:
        """Run an action that opens a file of a log, which has its active segment open from then on.

        Raises:
            OSError: as `attempt`.
        """
        if log not in self._logs:
            self._close_down_to(self._maximum - 1)
        opened = self.attempt(log, action)
        self._logs[log] = None
        return opened

    def attempt(self, log: WrittenLog, action: Callable[[], T]) -> T:
        """Run an action that opens a file of a log. If no descriptor is left, close segments of others until it can.

        Raises:
            OSError: the action has raised it.
        """
        while True:
            try:
                return action()
            except OSError as error:
                if error.errno not in NO_DESCRIPTOR_ERRORS or not self._close_one(log):
                    raise

    def forget(self, log: WrittenLog) -> None:
        """Note that a log has closed its active segment."""
        self._logs.pop(log, None)

    def _close_down_to(self, count: int) -> None:
        while len(self._logs) > count and self._close_one(None):
            pass

    def _close_one(self, wanted: WrittenLog | None) -> bool:
        """Close the first segment that can be closed, but not that of one log; return False if there is none."""
        for log in self._logs:
            if log is not wanted and log.can_close:
                log.close()
                return True
        return False
