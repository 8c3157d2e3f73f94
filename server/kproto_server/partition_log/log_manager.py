"""The partition logs of all topics: who makes them, how much memory they may take, and who fetches from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.partition_log.fetch_sessions import FetchSessionCache
from kproto_server.partition_log.retention import MemoryBound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.partition_log.partition_data import PartitionData

SESSION_ID_BYTES = 4
SESSION_ID_MAX = 2**31 - 1


class LogManager:
    """The partition logs of all topics, for the handlers that read and write them."""

    __slots__ = ("_fetch_sessions", "_memory", "_random_bytes", "_settings", "_topics", "data_of", "directory")

    def __init__(
        self, topics: Mapping[str, Topic], settings: DynamicSettings, random_bytes: Callable[[int], bytes]
    ) -> None:
        """``random_bytes``: makes the ids of fetch sessions."""
        self._topics = topics
        self._settings = settings
        self._random_bytes = random_bytes
        self._memory = MemoryBound(settings.current.int("records.memory.max.bytes"))
        self._fetch_sessions: dict[int, FetchSessionCache] = {}
        self.data_of: Callable[[Topic, Partition], PartitionData] = lambda _, partition: partition.make_data()
        """Return the log of a partition, ready to be written to. In memory, unless there is a data directory: then
        `persistence` puts a function here that raises OSError if the log can't be created."""
        self.directory: str | None = None
        """The path of the data directory; None: all logs are in memory."""

    def fetch_sessions(self, node_id: int) -> FetchSessionCache:
        """Return the fetch sessions of one broker."""
        found = self._fetch_sessions.get(node_id)
        if found is None:
            slots = self._settings.current.int("max.incremental.fetch.session.cache.slots")
            found = self._fetch_sessions[node_id] = FetchSessionCache(slots, self._random_session_id)
        return found

    def _random_session_id(self) -> int:
        return int.from_bytes(self._random_bytes(SESSION_ID_BYTES), "big") & SESSION_ID_MAX

    def wrote_to_memory(self, size: int) -> None:
        """Count bytes written to logs in memory; drop the oldest records of all topics if there are too many."""
        if self._memory.wrote(size):
            partitions = (partition for topic in self._topics.values() for partition in topic.partitions)
            self._memory.keep(partition.data for partition in partitions)
