"""The partitions of all topics: their logs, the limit on memory, and the fetch sessions of each node."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from kproto_server.partition_log.fetch_sessions import FetchSessionCache
from kproto_server.partition_log.retention import MemoryLimit
from kproto_server.storage.errors import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kproto.codes import ErrorCode
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.partition_log.partition_data import PartitionData

    VerifyTransaction = Callable[[str | None, int, int, str, int, int], ErrorCode]
    """Returns whether a transaction has a partition: NONE, or the error of Produce. Its arguments are transactional id,
    producer id, producer epoch, topic, partition index and the version of Produce."""

SESSION_ID_BYTES = 4
SESSION_ID_MAX = 2**31 - 1


def index_in_steps(partitions: Iterable[PartitionData]) -> Iterator[None]:
    """Index partitions on disk in steps. Those that cannot be read are left to the reader, which gets the error."""
    for data in partitions:
        with suppress(*UNREADABLE):
            for _ in data.index_steps():
                yield


class LogManager:
    """The partitions of all topics, for the handlers that read and write records."""

    __slots__ = (
        "_fetch_sessions", "_memory", "_random_bytes", "_topics", "data_of", "directory", "save_start_offsets",
        "settings", "unindexed", "verify_transaction",
    )  # fmt: skip

    def __init__(
        self, topics: Mapping[str, Topic], settings: DynamicSettings, random_bytes: Callable[[int], bytes]
    ) -> None:
        """``random_bytes``: the source of fetch session ids."""
        self._topics = topics
        self.settings: DynamicSettings = settings
        self._random_bytes = random_bytes
        self._memory = MemoryLimit(settings.current.int("records.memory.max.bytes"))
        self._fetch_sessions: dict[int, FetchSessionCache] = {}
        self.data_of: Callable[[Topic, Partition], PartitionData] = lambda _, partition: partition.make_data()
        """Returns the data of a partition for an append. With a data directory, `persistence` sets a function that
        creates the log, and raises OSError if that fails."""
        self.save_start_offsets: Callable[[Mapping[tuple[str, int], int]], bool] = lambda wanted: True
        """Saves the log start offsets that were raised, and those that partitions shall have; returns whether they are
        saved. With a data directory, `persistence` sets it."""
        self.unindexed: dict[str, list[PartitionData]] = {}
        """The partitions on disk whose next reader has many batches to index, by topic: after a start, and after a
        compaction. `note_unindexed` adds them, and `index_steps` removes them."""
        self.directory: str | None = None
        """The path of the data directory; None: all logs are in memory."""
        self.verify_transaction: VerifyTransaction
        """Called before the first batch of a transaction in a partition is appended (KIP-890)."""

    @property
    def log_dir(self) -> str:
        """The log directory as clients see it."""
        return self.directory or "memory"

    def fetch_sessions(self, node_id: int) -> FetchSessionCache:
        """Return the fetch sessions of one node."""
        found = self._fetch_sessions.get(node_id)
        if found is None:
            slots = self.settings.current.int("max.incremental.fetch.session.cache.slots")
            found = self._fetch_sessions[node_id] = FetchSessionCache(slots, self._random_session_id)
        return found

    def note_unindexed(self, name: str, data: PartitionData) -> None:
        """Have the next reader of a partition of a topic index it in steps."""
        waiting = self.unindexed.setdefault(name, [])
        if data not in waiting:
            waiting.append(data)

    def index_steps(self, names: Iterable[str]) -> Iterator[None]:
        """Index the partitions of topics that are in `unindexed`, in steps. Several callers share them."""
        unindexed = self.unindexed
        for name in unindexed.keys() & set(names):
            while (waiting := unindexed.get(name)) is not None:
                data = waiting[0]
                yield from index_in_steps((data,))
                if waiting and waiting[0] is data:
                    del waiting[0]
                if not waiting and unindexed.get(name) is waiting:
                    del unindexed[name]

    def reset(self) -> None:
        """Drop all fetch sessions: requests of their clients get FETCH_SESSION_ID_NOT_FOUND."""
        self._fetch_sessions.clear()

    def _random_session_id(self) -> int:
        return int.from_bytes(self._random_bytes(SESSION_ID_BYTES), "big") & SESSION_ID_MAX

    def wrote_to_memory(self, size: int) -> None:
        """Count an append in memory; drop the oldest records if all topics together exceed the limit."""
        if self._memory.add(size):
            partitions = (partition for topic in self._topics.values() for partition in topic.partitions)
            self._memory.drop_excess(partition.data for partition in partitions)
