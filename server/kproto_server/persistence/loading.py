"""Loading of a coordinator's state from its logs, one partition after the other, in turns between iterations.

A partition that is not loaded returns COORDINATOR_LOAD_IN_PROGRESS (LF-30); the loaded ones serve meanwhile.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator

    from kproto_server.persistence.worker_thread import Post
    from kproto_server.storage.disk import Disk
    from kproto_server.storage.partition_log import PartitionLog

logger = logging.getLogger("kproto.log")

TURN_S = 0.005
"""Duration of one turn of loading, for which clients may have to wait."""
SLICE_SIZE_BYTES = 1 << 20


class Load(Protocol):
    """The load of one partition."""

    failed: str | None
    """Why the partition can't be served."""

    def step(self) -> bool:
        """Load for some milliseconds; return whether the load is complete."""
        ...


L = TypeVar("L", bound=Load)


class _Current(NamedTuple, Generic[L]):
    """The load in progress."""

    number: int
    content: Generator[bytes]
    load: L


class Surroundings(NamedTuple):
    """What every loading needs from the broker."""

    post: Post
    disk: Disk
    monotonic_s: Callable[[], float]
    """Returns real time, which ends the turns."""


class Loading(Generic[L]):
    """Loads all partitions of a topic whose logs are not empty; subclasses say how."""

    def __init__(
        self,
        surroundings: Surroundings,
        logs: dict[int, PartitionLog],
        unavailable: dict[int, int],
        on_loaded: Callable[[], object],
        of_topic: str = "",
    ) -> None:
        """Args:
        unavailable: the partitions that are not served, with the error of the coordinator.
        on_loaded: called in the event loop when all partitions are loaded.
        of_topic: follows the number of a partition in the log of the program.
        """
        self._post, self._disk, self._monotonic_s = surroundings
        self._unavailable = unavailable
        self._on_loaded = on_loaded
        self._of_topic = of_topic
        self._queue = [(number, log) for number, log in sorted(logs.items()) if log.size]
        self._current: _Current[L] | None = None
        self._topics = {number: log.topic for number, log in self._queue}
        for number in self._topics:
            unavailable[number] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def start(self) -> None:
        """Load in the event loop, a turn in each iteration."""
        self._post(self._turn)

    def finish(self) -> None:
        """Load at once what is left; its turns find nothing. Blocks."""
        while self._step():
            pass

    def leave_out(self, topics: Collection[str]) -> None:
        """Load nothing more of topics: their logs were removed. The caller drops what is in the tables already."""
        self._queue = [(number, log) for number, log in self._queue if log.topic not in topics]
        if self._current is not None and self._topics[self._current.number] in topics:
            self._current.content.close()
            self._current = None
        for number, topic in self._topics.items():
            if topic in topics:
                self._unavailable.pop(number, None)

    def _turn(self) -> None:
        end_s = self._monotonic_s() + TURN_S
        while self._monotonic_s() < end_s:
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
            self._current = _Current(number, content, self._load(number, content))
        number, _, load = self._current
        if not load.step():
            self._note_progress(load)
            return True
        self._current = None
        self._note_end(number, load)
        if load.failed is not None:
            self._unavailable[number] = ErrorCode.NOT_COORDINATOR
            logger.error("partition %d%s can't be served: %s", number, self._of_topic, load.failed)
        else:
            self._unavailable.pop(number, None)
            self._take(number, load)
        return True

    def _load(self, number: int, content: Iterator[bytes]) -> L:
        """Begin to load a partition."""
        raise NotImplementedError

    def _take(self, number: int, load: L) -> None:
        """Serve what was loaded."""
        raise NotImplementedError

    def _note_progress(self, load: L) -> None:
        """Called after each step that does not end a load."""

    def _note_end(self, number: int, load: L) -> None:
        """Called when a load has ended, also if it has failed."""


def slices(disk: Disk, log: PartitionLog) -> Generator[bytes]:
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
