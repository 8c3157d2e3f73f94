"""A share partition: what the members of one share group do with the records of one partition.

A change of the state of records is a `Transition`: the caller stores its batches, and then completes it. The change
that is not stored, from Available to Acquired, is in `acquisition`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto_server.share_groups.in_flight import NO_LOCK, TERMINAL, RecordState, StateBatch
from kproto_server.share_groups.in_flight_records import InFlightRecords

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kproto_server.share_groups.in_flight import Delivery, InFlightBatch, Span

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""Kafka's numbers of what a member acknowledges."""
STATE_AFTER = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}

NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
FIRST_IS_PAST = "Batch record not found. The first offset in request is past acquired records."
LAST_IS_PAST = "Batch record not found. The last offset in request is past acquired records."
BATCH_NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
SUBSET_NOT_ACQUIRED = "The batch cannot be acknowledged. The subset batch is not in the acquired state."
OFFSET_NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
NOT_OWNER_OF_BATCH = "Member is not the owner of batch record"
NOT_OWNER_OF_OFFSET = "Member is not the owner of offset"
NOT_RENEWED = "Renewing acquisition locks is not enabled for the group."
IS_CHANGING = "The record state is invalid. The acknowledgement of delivery could not be completed."


class Refused(NamedTuple):
    """Why acknowledgements are refused."""

    error: ErrorCode
    message: str


class Acknowledgement(NamedTuple):
    """What a member acknowledges: one type for all offsets, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class DeadBatch(NamedTuple):
    """Records that go to the dead letter queue."""

    first_offset: int
    last_offset: int
    delivery_count: int
    is_rejected: bool
    """Whether a member has rejected them; or they were delivered too often."""
    delivery: Delivery
    """Their state."""


class Transition:
    """Changes of records that have begun."""

    __slots__ = ("_deliveries", "batches")

    def __init__(self) -> None:
        self.batches: list[StateBatch] = []
        """What has to be stored."""
        self._deliveries: list[Delivery] = []

    def add(self, first_offset: int, last_offset: int, delivery: Delivery) -> None:
        self.batches.append(StateBatch(first_offset, last_offset, delivery.state, delivery.count))
        self._deliveries.append(delivery)

    def changed(self) -> Iterator[tuple[StateBatch, Delivery]]:
        return zip(self.batches, self._deliveries, strict=True)


class SharePartition(InFlightRecords):
    """The records of one partition that one share group has in flight, and the members that have acquired them."""

    def __init__(self, start_offset: int, delivery_count_max: int, in_flight_max: int) -> None:
        super().__init__(start_offset)
        self.delivery_count_max: int = delivery_count_max
        """`group.share.delivery.count.limit`."""
        self.in_flight_max: int = in_flight_max
        """`group.share.partition.max.record.locks`."""
        self.next_lock_end_ms: int | None = None
        """No lock ends before; None: none is set."""
        self.has_dead_letter_queue: bool = False

    def limit(self, delivery_count_max: int, in_flight_max: int, *, has_dead_letter_queue: bool) -> None:
        """Set what the configs of the group may have changed."""
        self.delivery_count_max, self.in_flight_max = delivery_count_max, in_flight_max
        self.has_dead_letter_queue = has_dead_letter_queue

    @property
    def can_acquire(self) -> bool:
        """Whether a member may acquire records: there are available ones, or few enough are in flight."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.record_count < self.in_flight_max

    # Acknowledging.

    def acknowledge(
        self, member_id: str, acknowledgements: Iterable[Acknowledgement], now_ms: int, lock_end_ms: int | None
    ) -> Transition | Refused:
        """Begin what a member acknowledges, or return why none of it is accepted.

        ``lock_end_ms``: the end of a lock that is renewed; None: the group renews no locks.
        """
        transition = Transition()
        for one in acknowledgements:
            refused = self._acknowledge_one(member_id, one, lock_end_ms, transition)
            if refused is not None:
                self.complete(transition, commit=False, now_ms=now_ms)
                return refused
        return transition

    def _acknowledge_one(
        self, member_id: str, one: Acknowledgement, lock_end_ms: int | None, transition: Transition
    ) -> Refused | None:
        if any(not GAP <= number <= RENEW for number in one.types):
            listed = ", ".join(map(str, one.types))
            return Refused(ErrorCode.INVALID_REQUEST, f"Invalid acknowledge type: [{listed}]")
        if one.last_offset < self.start_offset:
            return None
        found = self._batches_of(one)
        if isinstance(found, Refused):
            return found
        for batch in found:
            if batch.last_offset < self.start_offset:
                continue
            message = self._acknowledge_batch(member_id, one, batch, lock_end_ms, transition)
            if message:
                return Refused(ErrorCode.INVALID_RECORD_STATE, message)
        return None

    def _batches_of(self, one: Acknowledgement) -> list[InFlightBatch] | Refused:
        floor = self.floor(one.first_offset)
        if floor is None and one.first_offset < self.start_offset <= one.last_offset:
            floor = self.floor(self.start_offset)
        if floor is None:
            return Refused(ErrorCode.INVALID_RECORD_STATE, NOT_FOUND)
        found = self.beginning_in(floor.first_offset, one.last_offset)
        if not found or found[-1].last_offset < one.first_offset:
            return Refused(ErrorCode.INVALID_REQUEST, FIRST_IS_PAST)
        if one.last_offset > found[-1].last_offset:
            return Refused(ErrorCode.INVALID_REQUEST, LAST_IS_PAST)
        return found

    def _acknowledge_batch(
        self,
        member_id: str,
        one: Acknowledgement,
        batch: InFlightBatch,
        lock_end_ms: int | None,
        transition: Transition,
    ) -> str:
        """Begin an acknowledgement in one batch; return why it is refused, or an empty text."""
        if batch.offsets is None:
            if not batch.delivery.member_id:
                return BATCH_NOT_ACQUIRED
            if batch.delivery.member_id != member_id:
                return NOT_OWNER_OF_BATCH
            if batch.delivery.is_changing:
                return IS_CHANGING
            is_whole = batch.is_within(one.first_offset, one.last_offset)
            if is_whole and len(one.types) == 1 and not self.begins_before_start(batch):
                if batch.delivery.state is not RecordState.ACQUIRED:
                    return BATCH_NOT_ACQUIRED
                return self._begin(
                    one.types[0], batch.first_offset, batch.last_offset, batch.delivery, lock_end_ms, transition
                )
            if batch.delivery.state is not RecordState.ACQUIRED:
                return SUBSET_NOT_ACQUIRED
        for offset, delivery in batch.split().items():
            if offset < one.first_offset or offset < self.start_offset:
                continue
            if offset > one.last_offset:
                break
            if delivery.state is not RecordState.ACQUIRED:
                return OFFSET_NOT_ACQUIRED
            if delivery.is_changing:
                return IS_CHANGING
            if delivery.member_id != member_id:
                return NOT_OWNER_OF_OFFSET
            number = one.types[offset - one.first_offset] if len(one.types) > 1 else one.types[0]
            message = self._begin(number, offset, offset, delivery, lock_end_ms, transition)
            if message:
                return message
        return ""

    def _begin(
        self,
        number: int,
        first_offset: int,
        last_offset: int,
        delivery: Delivery,
        lock_end_ms: int | None,
        transition: Transition,
    ) -> str:
        """Begin a change, or renew a lock; return why that is refused, or an empty text."""
        if number == RENEW:
            if lock_end_ms is None:
                return NOT_RENEWED
            delivery.lock_end_ms = lock_end_ms
            self.note_lock(lock_end_ms)
            return ""
        state = self._state_after(STATE_AFTER[number], delivery, is_rejected=number == REJECT)
        delivery.begin(state)
        self._note_begun(first_offset, last_offset, delivery, transition)
        return ""

    def _state_after(self, state: RecordState, delivery: Delivery, *, is_rejected: bool = False) -> RecordState:
        """Return the state that a record gets instead of another one, if it was delivered too often, or rejected."""
        is_too_often = state is RecordState.AVAILABLE and delivery.count >= self.delivery_count_max
        if self.has_dead_letter_queue and (is_too_often or is_rejected):
            delivery.is_rejected = is_rejected
            self.note_dead()
            return RecordState.ARCHIVING
        return RecordState.ARCHIVED if is_too_often else state

    def _note_begun(self, first_offset: int, last_offset: int, delivery: Delivery, transition: Transition) -> None:
        transition.add(first_offset, last_offset, delivery)
        if delivery.state in TERMINAL:
            self.note_done(self.counted(first_offset, last_offset))

    def release_all(self, member_id: str) -> Transition:
        """Begin to release all records that a member has acquired, as its session is closed."""
        transition = Transition()
        for batch in self.in_flight():
            delivery = batch.delivery
            if batch.offsets is None and (delivery.member_id != member_id or not self.begins_before_start(batch)):
                if delivery.member_id == member_id and delivery.state is RecordState.ACQUIRED:
                    self._release(batch.first_offset, batch.last_offset, delivery, transition)
                continue
            for offset, one in batch.split().items():
                if one.member_id == member_id and one.state is RecordState.ACQUIRED and not one.is_changing:
                    self._release(offset, offset, one, transition)
        return transition

    def _release(self, first_offset: int, last_offset: int, delivery: Delivery, transition: Transition) -> None:
        delivery.begin(self._state_released(last_offset, delivery))
        self._note_begun(first_offset, last_offset, delivery, transition)

    def _state_released(self, last_offset: int, delivery: Delivery) -> RecordState:
        if last_offset < self.start_offset:
            return RecordState.ARCHIVED
        return self._state_after(RecordState.AVAILABLE, delivery)

    def dead(self) -> list[DeadBatch]:
        """Return the records that go to the dead letter queue: those that are stored as Archiving."""
        return [
            DeadBatch(first, last, delivery.count, delivery.is_rejected, delivery)
            for batch in self.in_flight()
            for first, last, delivery in batch.deliveries()
            if delivery.state is RecordState.ARCHIVING and not delivery.is_changing
        ]

    def archive_dead(self, dead: Iterable[DeadBatch]) -> list[StateBatch]:
        """Archive records that are in the dead letter queue; return what has to be stored.

        Others that are Archiving by now have their turn later.
        """
        written, archived = {one.delivery for one in dead}, []
        self.note_dead(has_dead=False)
        for batch in self.in_flight():
            for first, last, delivery in batch.deliveries():
                if delivery in written:
                    delivery.archive()
                    self.note_done(self.counted(first, last))
                    archived.append(StateBatch(first, last, delivery.state, delivery.count))
                elif delivery.state is RecordState.ARCHIVING:
                    self.note_dead()
        return archived

    def complete(self, transition: Transition, *, commit: bool, now_ms: int) -> None:
        """End changes that have begun: what is stored remains, anything else is rolled back."""
        for batch, delivery in transition.changed():
            delivery.complete(commit=commit, now_ms=now_ms, count_max=self.delivery_count_max)
            if delivery.state is RecordState.AVAILABLE:
                self.is_released = True
            if batch.delivery_state in TERMINAL and delivery.state not in TERMINAL:
                self.note_done(-self.counted(batch.first_offset, batch.last_offset))
        if commit and transition.batches:
            self.move_start()

    # Locks.

    def note_lock(self, end_ms: int) -> None:
        """Note that a lock was set."""
        if self.next_lock_end_ms is None or end_ms < self.next_lock_end_ms:
            self.next_lock_end_ms = end_ms

    def end_locks(self, now_ms: int) -> list[StateBatch]:
        """Release the records whose locks have ended; return what has to be stored before the start offset moves."""
        if self.next_lock_end_ms is None or now_ms < self.next_lock_end_ms:
            return []
        released: list[StateBatch] = []
        self.next_lock_end_ms = None
        for batch in self.in_flight():
            delivery = batch.delivery
            if batch.offsets is None and self.begins_before_start(batch) and delivery.state is RecordState.ACQUIRED:
                batch.split()
            for first, last, one in batch.deliveries():
                if one.lock_end_ms != NO_LOCK and one.lock_end_ms > now_ms:
                    self.note_lock(one.lock_end_ms)
                elif one.lock_end_ms != NO_LOCK and one.state is RecordState.ACQUIRED and not one.is_changing:
                    released.append(self._end_lock(first, last, one))
        return released

    def _end_lock(self, first_offset: int, last_offset: int, delivery: Delivery) -> StateBatch:
        delivery.set(self._state_released(last_offset, delivery))
        delivery.lock_end_ms = NO_LOCK
        if delivery.state is RecordState.ARCHIVED:
            self.note_done(self.counted(first_offset, last_offset))
        elif delivery.state is RecordState.AVAILABLE:
            self.note_released()
        return StateBatch(first_offset, last_offset, delivery.state, delivery.count)

    def archive_acquired(self, spans: Iterable[Span]) -> None:
        """Archive acquired records of aborted transactions."""
        for span in spans:
            floor = self.floor(span.base_offset)
            first = span.base_offset if floor is None else floor.first_offset
            batches = self.beginning_in(first, span.last_offset)
            self.archive(span.base_offset, span.last_offset + 1, batches, RecordState.ACQUIRED)
