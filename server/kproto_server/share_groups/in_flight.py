"""The records of a share partition that are in flight: fetched, and not yet done with.

Theory of operation. A record that was never fetched is not in flight. Once it is, it goes through Kafka's states::

    Available <-> Acquired -> Acknowledged (accepted), or Archived (rejected, a gap, or delivered too often)

With a dead letter queue (`dead_letters`), rejected records and those delivered too often are Archiving first.

Records that were fetched together have one state, until something happens to only some of them: then
`InFlightBatch.split` gives each its own. A change that the share coordinator has to store first is begun, and completed
or rolled back when that is known; meanwhile nothing else happens to its records.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

NO_MEMBER = ""
"""Instead of the member id of a record that is not acquired."""
NO_LOCK = 0
"""Instead of the time at which a lock ends."""


class RecordState(IntEnum):
    """The state of a record; the numbers are those of `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """Archived once it is in the dead letter queue."""
    ARCHIVED = 4


TERMINAL = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
"""The states of records that are never delivered again."""


class StateBatch(NamedTuple):
    """Records that follow each other and have the same state, as the share coordinator stores them."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class Span(NamedTuple):
    """The offsets of a batch in the log."""

    base_offset: int
    last_offset: int


class Delivery:
    """State and delivery count of one record, or of all records of a batch."""

    __slots__ = ("_before", "count", "is_rejected", "lock_end_ms", "member_id", "state")

    def __init__(self, state: RecordState, count: int, member_id: str = NO_MEMBER, lock_end_ms: int = NO_LOCK) -> None:
        self.state: RecordState = state
        self.count: int = count
        """How often it was delivered."""
        self.member_id: str = member_id
        """The member that has acquired it."""
        self.lock_end_ms: int = lock_end_ms
        """When its lock ends, and it is available again."""
        self.is_rejected: bool = False
        """Whether a member has rejected it, while it is Archiving."""
        self._before: tuple[RecordState, str] | None = None
        """State and member before a change that has begun."""

    def copy(self) -> Delivery:
        return Delivery(self.state, self.count, self.member_id, self.lock_end_ms)

    @property
    def is_changing(self) -> bool:
        """Whether a change has begun."""
        return self._before is not None

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE and self._before is None

    @property
    def is_done(self) -> bool:
        """Whether it is never delivered again."""
        return self.state in TERMINAL and self._before is None

    def acquire(self, member_id: str, lock_end_ms: int) -> None:
        self.state = RecordState.ACQUIRED
        self.count += 1
        self.member_id = member_id
        self.lock_end_ms = lock_end_ms

    def begin(self, state: RecordState) -> None:
        """Begin a change of an acquired record."""
        before = self.state, self.member_id
        self.set(state)
        self._before = before

    def set(self, state: RecordState) -> None:
        """Change the state of an acquired record at once."""
        self.state = state
        self.member_id = NO_MEMBER

    def complete(self, *, commit: bool, now_ms: int, count_max: int) -> None:
        """End the change that has begun; without ``commit`` it is rolled back, unless the lock has ended meanwhile."""
        before, self._before = self._before, None
        if before is None or commit:
            self.lock_end_ms = NO_LOCK
        elif self.lock_end_ms <= now_ms:
            self.state = RecordState.ARCHIVED if self.count >= count_max else RecordState.AVAILABLE
            self.member_id, self.lock_end_ms = NO_MEMBER, NO_LOCK
        else:
            self.state, self.member_id = before

    def archive(self) -> None:
        """Archive it, whatever change has begun."""
        self.state = RecordState.ARCHIVED
        self.member_id, self.lock_end_ms, self._before = NO_MEMBER, NO_LOCK, None


class InFlightBatch:
    """Records that were fetched together."""

    __slots__ = ("delivery", "first_offset", "last_offset", "offsets")

    def __init__(self, first_offset: int, last_offset: int, delivery: Delivery) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery: Delivery = delivery
        """The state of all records, while ``offsets`` is None."""
        self.offsets: dict[int, Delivery] | None = None
        """The state of each record."""

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1

    def split(self) -> dict[int, Delivery]:
        """Give each record its own state, if it has none; return them."""
        if self.offsets is None:
            self.offsets = {offset: self.delivery.copy() for offset in range(self.first_offset, self.last_offset + 1)}
        return self.offsets

    def deliveries(self) -> list[tuple[int, int, Delivery]]:
        """Return the states of the batch, each with the first and the last offset that has it."""
        if self.offsets is None:
            return [(self.first_offset, self.last_offset, self.delivery)]
        return [(offset, offset, delivery) for offset, delivery in self.offsets.items()]

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Return whether all records are in a range."""
        return first_offset <= self.first_offset and self.last_offset <= last_offset
