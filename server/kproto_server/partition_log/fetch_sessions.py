"""Fetch sessions: what a consumer fetches is remembered, and only what has changed is said, both ways (KIP-227, BA-76).

Theory of operation. A request with epoch 0 asks for a session; the answer has its id. Each further one has that id and
an epoch that is one more; it names only partitions that are new or are fetched from elsewhere, and those to forget. The
answer has only partitions with records, with an error, or with a changed high watermark or start. A partition that had
records goes to the end, so that with a small budget all have their turn. An error of the session itself makes the
client begin anew, with a full request. Each broker remembers so many sessions; a further one takes the place of the
one that was silent for longest, if that was long enough, or else there is none: session 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kproto.messages.k01_fetch import FetchPartition
    from kproto.messages.k01_fetch import PartitionData as PartitionAnswer

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
EPOCH_MAX = 2**31 - 1
UNKNOWN = -1
EVICTION_MS = 120_000
"""`min.incremental.fetch.session.eviction.ms`, which Kafka does not let anybody set."""


class Wanted(NamedTuple):
    """One partition that is to be fetched."""

    topic: str
    topic_id: bytes
    asked: FetchPartition

    @property
    def key(self) -> Key:
        return self.topic, self.topic_id, self.asked.partition


Key = tuple[str, bytes, int]


class _Cached:
    """A partition of a session, and what the client knows of it."""

    __slots__ = ("high_watermark", "log_start_offset", "wanted")

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.high_watermark = UNKNOWN
        self.log_start_offset = UNKNOWN

    def is_news(self, answer: PartitionAnswer) -> bool:
        """Whether the client has to be told; it knows then."""
        news = (
            bool(answer.records)
            or bool(answer.error_code)
            or answer.diverging_epoch.epoch >= 0
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
        )
        self.high_watermark, self.log_start_offset = answer.high_watermark, answer.log_start_offset
        return news


class FetchSession:
    """What one consumer fetches from one broker."""

    def __init__(self, session_id: int, *, by_id: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.epoch = 1
        """The one that the next request has to have."""
        self.by_id = by_id
        self.used_ms = now_ms
        self._partitions: dict[Key, _Cached] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def wanted(self) -> Iterator[Wanted]:
        """Yield what is fetched, in the order in which it is read."""
        return (cached.wanted for cached in self._partitions.values())

    def update(self, wanted: Iterable[Wanted], forgotten: Iterable[Key]) -> None:
        """Take what a request changes."""
        for one in wanted:
            cached = self._partitions.get(one.key)
            if cached is None:
                self._partitions[one.key] = _Cached(one)
            else:
                cached.wanted = one
        for key in forgotten:
            self._partitions.pop(key, None)

    def next_epoch(self) -> None:
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def is_news(self, wanted: Wanted, answer: PartitionAnswer) -> bool:
        """Whether an answer has to have a partition; one with records is read last from now on."""
        cached = self._partitions.get(wanted.key)
        if cached is None:
            return True
        if answer.records:
            del self._partitions[wanted.key]
            self._partitions[wanted.key] = cached
        return cached.is_news(answer)


class FetchSessions:
    """The sessions of one broker."""

    def __init__(self, slots: int, random_id: Callable[[], int]) -> None:
        """``slots``: `max.incremental.fetch.session.cache.slots`."""
        self._slots = slots
        self._random_id = random_id
        self._by_id: dict[int, FetchSession] = {}
        """The one that was used last stands last."""

    def __len__(self) -> int:
        return len(self._by_id)

    def close(self, session_id: int) -> None:
        """Forget a session, if there is such a one."""
        self._by_id.pop(session_id, None)

    def open(self, wanted: Iterable[Wanted], now_ms: int, *, by_id: bool) -> FetchSession | None:
        """Return a new session; None if there is no room."""
        if len(self._by_id) >= self._slots and not self._evict(now_ms):
            return None
        session_id = self._random_id()
        while session_id == NO_SESSION or session_id in self._by_id:
            session_id = self._random_id()
        session = self._by_id[session_id] = FetchSession(session_id, by_id=by_id, now_ms=now_ms)
        session.update(wanted, ())
        return session

    def _evict(self, now_ms: int) -> bool:
        oldest = next(iter(self._by_id.values()), None)
        if oldest is None or now_ms - oldest.used_ms <= EVICTION_MS:
            return False
        self.close(oldest.session_id)
        return True

    def resume(self, session_id: int, epoch: int, now_ms: int, *, by_id: bool) -> FetchSession | ErrorCode:
        """Return the session that a request goes on with, or why it can't."""
        session = self._by_id.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id is not by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.used_ms = now_ms
        del self._by_id[session_id]
        self._by_id[session_id] = session
        return session
