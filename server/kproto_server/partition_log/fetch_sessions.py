"""Fetch sessions: incremental Fetch requests and responses (KIP-227, BA-76).

Theory of operation. A consumer of many partitions would repeat all of them in each Fetch request, and the broker in
each response, although few change. A fetch session lets both sides leave out what the other side knows:

- A *full* request has session epoch 0. The broker opens a session for the partitions of the request, and the response
  has the session's id. The response to a full request has all partitions.
- An *incremental* request has the session id and the next epoch: 1, 2, ... It names only partitions that are new or
  have another fetch offset, and the partitions to forget. The broker reads all partitions of the session. It returns
  those with records, an error or a diverging epoch, and those whose high watermark or log start offset has changed.
- A request with epoch -1 closes the session and is a full request without a new one.

The broker's copy of the partitions must be the consumer's. The epoch ensures that: it counts the requests, so a lost or
repeated request gives INVALID_FETCH_SESSION_EPOCH, an evicted session FETCH_SESSION_ID_NOT_FOUND, and the consumer
starts again with a full request.

Two orders are part of the state. In a session, a partition that returned records moves to the end, so that each
partition is read first at some time, even if the response is full after one. In the broker's cache, a session that is
used moves to the end, so that the first session is the one that was unused for longest. If the cache is full, that
session is evicted once it was unused for two minutes; until then new requests have no session (session id 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kproto.messages.k01_fetch import FetchPartition, PartitionData

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
"""Session epochs of full requests: one that opens a session, and one that does not."""
EPOCH_MAX = 2**31 - 1
UNKNOWN = -1
PARTITIONS_MAX = 200_000
"""Partitions of all sessions of a broker; Kafka limits the number of sessions only. One takes about 500 bytes."""
EVICTION_MS = 120_000
"""`min.incremental.fetch.session.eviction.ms`, which is a constant in Kafka."""


class RequestedPartition(NamedTuple):
    """One partition that a consumer fetches."""

    topic: str
    """Empty from Fetch v13 on, which has topic ids."""
    topic_id: bytes
    """Zero before Fetch v13."""
    fetch: FetchPartition
    """Fetch offset, limits and epochs, as the consumer last sent them."""

    @property
    def key(self) -> PartitionKey:
        return self.topic, self.topic_id, self.fetch.partition


PartitionKey = tuple[str, bytes, int]
"""Topic name, topic id and partition index."""


class CachedPartition:
    """A partition of a session, and the offsets that the consumer knows from the last response with it."""

    __slots__ = ("high_watermark", "log_start_offset", "requested")

    def __init__(self, requested: RequestedPartition) -> None:
        self.requested: RequestedPartition = requested
        # No response has -1 for both, so the first response always has the partition.
        self.high_watermark: int = UNKNOWN
        self.log_start_offset: int = UNKNOWN

    def must_return(self, read: PartitionData) -> bool:
        """Return whether the response must have the partition. The consumer then knows the offsets in it."""
        has_changed = (
            bool(read.records)
            or bool(read.error_code)
            or read.diverging_epoch.epoch >= 0
            or read.high_watermark != self.high_watermark
            or read.log_start_offset != self.log_start_offset
        )
        self.high_watermark, self.log_start_offset = read.high_watermark, read.log_start_offset
        return has_changed


class FetchSession:
    """The partitions that one consumer fetches from one broker."""

    def __init__(self, session_id: int, *, by_topic_id: bool, now_ms: int) -> None:
        """``by_topic_id``: whether the session's requests name topics by id; that cannot change later."""
        self.session_id = session_id
        self.epoch: int = 1
        """The epoch that the next request must have."""
        self.by_topic_id = by_topic_id
        self.last_used_ms = now_ms
        self._partitions: dict[PartitionKey, CachedPartition] = {}
        """In the order in which they are read."""

    def __len__(self) -> int:
        return len(self._partitions)

    def __contains__(self, key: PartitionKey) -> bool:
        return key in self._partitions

    def requested(self) -> Iterator[RequestedPartition]:
        """Yield the partitions in the order in which they are read."""
        return (cached.requested for cached in self._partitions.values())

    def update(self, requested: Iterable[RequestedPartition], forgotten: Iterable[PartitionKey]) -> None:
        """Apply the changes of a request. A partition that is known keeps its position in the order."""
        for partition in requested:
            cached = self._partitions.get(partition.key)
            if cached is None:
                self._partitions[partition.key] = CachedPartition(partition)
            else:
                cached.requested = partition
        for key in forgotten:
            self._partitions.pop(key, None)

    def next_epoch(self) -> None:
        """Count a request. Epoch 0 means a full request, so the count starts again at 1."""
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def must_return(self, requested: RequestedPartition, read: PartitionData) -> bool:
        """Return whether an incremental response must have a partition; one with records moves to the end."""
        cached = self._partitions.get(requested.key)
        if cached is None:
            # A later request of the same session has removed the partition while this one was delayed.
            return True
        if read.records:
            del self._partitions[requested.key]
            self._partitions[requested.key] = cached
        return cached.must_return(read)


class FetchSessionCache:
    """The fetch sessions of one broker."""

    def __init__(self, slots: int, random_id: Callable[[], int]) -> None:
        """``slots``: `max.incremental.fetch.session.cache.slots`; ``random_id``: returns a positive int32."""
        self._slots = slots
        self._random_id = random_id
        self._by_id: dict[int, FetchSession] = {}
        """The session that was used last is the last one."""
        self._partition_count = 0

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def partition_count(self) -> int:
        """The number of partitions of all sessions."""
        return self._partition_count

    def find(self, session_id: int) -> FetchSession | None:
        """Return a session without using it."""
        return self._by_id.get(session_id)

    def close(self, session_id: int) -> None:
        """Remove a session, if it exists."""
        session = self._by_id.pop(session_id, None)
        if session is not None:
            self._partition_count -= len(session)

    def update(
        self, session: FetchSession, requested: Sequence[RequestedPartition], forgotten: Iterable[PartitionKey]
    ) -> bool:
        """Apply the changes of a request; return False and close the session if there would be too many partitions."""
        if self._partition_count + len(requested) > PARTITIONS_MAX:
            new = sum(partition.key not in session for partition in requested)
            while self._partition_count + new > PARTITIONS_MAX:
                if not self._evict(session.last_used_ms):
                    self.close(session.session_id)
                    return False
        before = len(session)
        session.update(requested, forgotten)
        self._partition_count += len(session) - before
        return True

    def open(self, requested: Sequence[RequestedPartition], now_ms: int, *, by_topic_id: bool) -> FetchSession | None:
        """Return a new session for the partitions of a full request; None if the cache is full."""
        while len(self._by_id) >= self._slots or self._partition_count + len(requested) > PARTITIONS_MAX:
            if not self._evict(now_ms):
                return None
        session_id = self._random_id()
        while session_id == NO_SESSION or session_id in self._by_id:
            session_id = self._random_id()
        session = self._by_id[session_id] = FetchSession(session_id, by_topic_id=by_topic_id, now_ms=now_ms)
        session.update(requested, ())
        self._partition_count += len(session)
        return session

    def _evict(self, now_ms: int) -> bool:
        """Remove the session that was unused for longest; return whether it was unused for long enough."""
        oldest = next(iter(self._by_id.values()), None)
        if oldest is None or now_ms - oldest.last_used_ms <= EVICTION_MS:
            return False
        self.close(oldest.session_id)
        return True

    def resume(self, session_id: int, epoch: int, now_ms: int, *, by_topic_id: bool) -> FetchSession | ErrorCode:
        """Return the session of an incremental request, or the error that makes the consumer start again."""
        session = self._by_id.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_topic_id is not by_topic_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.last_used_ms = now_ms
        del self._by_id[session_id]
        self._by_id[session_id] = session
        return session
