"""Idempotent producers: which batch is the next one, a duplicate, or out of order (BA-65).

Theory of operation. A producer with a producer id numbers its records in each partition; a batch has the sequence
number of its first record. The partition keeps the last five batches of each producer, as many as the producer may have
in flight; a broker of 0.11 uses the last one only (`ProducerState.known_batches`). A batch that equals one of them is a
duplicate: the response has the offset of the first append, and nothing is appended. A batch whose first sequence
follows the last one is appended. Any other batch shows that batches were lost. A new producer epoch begins at sequence
0. Sequence numbers have 31 bits and wrap around.

A producer with a transactional id has at most one open transaction in a partition, and all its batches belong to it.
The marker that ends the transaction has a producer epoch, too: it fences producers with a lower epoch, and raises that
of the producer. Of two transaction coordinators, the one with the higher coordinator epoch is right.

The first batch of a transaction is verified by the transaction coordinator (KIP-890). While batches wait for that, or
it has failed, no batch is appended that follows the lowest of them: the producer repeats it, and would find its
sequence taken. The same holds for batches that the log could not write.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

BATCHES_MAX = 5
"""The greatest max.in.flight.requests.per.connection of an idempotent producer."""
SEQUENCE_MODULUS = 2**31
NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, NO_COORDINATOR_EPOCH, NO_OFFSET = -1, -1, -1, -1, -1


class BatchMetadata(NamedTuple):
    """An appended batch of a producer."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


class Verification(NamedTuple):
    """The lowest sequence that was verified, could not be, or was not written, since the producer has last written."""

    epoch: int
    lowest_sequence: int
    since_ms: int


class ProducerState:
    """The last batches of one producer in one partition."""

    __slots__ = (
        "batches", "coordinator_epoch", "epoch", "last_append_ms", "last_timestamp_ms", "marker_offset",
        "transaction_first_offset",
    )  # fmt: skip

    def __init__(self, epoch: int) -> None:
        self.epoch: int = epoch
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_MAX)
        """Empty after a marker with a new epoch."""
        self.last_append_ms: int = 0
        """The time of the last append, after which the producer expires."""
        self.last_timestamp_ms: int = NO_TIMESTAMP
        """The timestamp of the last batch or marker."""
        self.transaction_first_offset: int | None = None
        """The first offset of the open transaction."""
        self.coordinator_epoch: int = NO_COORDINATOR_EPOCH
        """The coordinator epoch of the last marker."""
        self.marker_offset: int = NO_OFFSET
        """The offset of the last marker."""

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; -1 if there is none in this epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def known_batches(self, *, only_last: bool) -> Iterable[BatchMetadata]:
        """Return the batches of which a batch may be a duplicate. The producer has appended one at least.

        ``only_last``: those of a broker of 0.11: the last batch. Behind a marker, it is the last record of that batch,
        with the offset of the marker.
        """
        if not only_last:
            return self.batches
        last = self.batches[-1]
        if last.base_offset < self.marker_offset:
            sequence = last.last_sequence
            last = BatchMetadata(sequence, sequence, self.marker_offset, self.last_timestamp_ms)
        return (last,)

    def raise_epoch(self, epoch: int) -> None:
        """Begin an epoch, if it is a new one."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class ProducerStates:
    """The producers of one partition."""

    __slots__ = ("_by_id", "_verifications")

    def __init__(self) -> None:
        self._by_id: dict[int, ProducerState] = {}
        self._verifications: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._by_id.keys() | self._verifications.keys())

    def check(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        count: int,
        *,
        refuses_unknown: bool,
        after_marker_error: ErrorCode = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        knows_only_last: bool = False,
        is_transactional: bool = False,
    ) -> ErrorCode | BatchMetadata:
        """Return NONE if a batch of ``count`` records may be appended, an error, or the batch that it duplicates.

        ``refuses_unknown``: whether the first batch of an unknown producer must have sequence 0 (releases up to 2.4).
        ``after_marker_error``: the error if it is not 0 in an epoch of which only a marker is known.
        ``knows_only_last``: as `ProducerState.known_batches`.
        """
        producer = self._by_id.get(producer_id)
        verification = self._verifications.get(producer_id) if self._verifications else None
        is_early = verification is not None and first_sequence > verification.lowest_sequence
        if producer is None:
            if is_early:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            is_refused = refuses_unknown and first_sequence != 0
            return ErrorCode.UNKNOWN_PRODUCER_ID if is_refused else ErrorCode.NONE
        if epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if epoch == producer.epoch and producer.batches:
            last_sequence = sequence_after(first_sequence, count - 1)
            for batch in producer.known_batches(only_last=knows_only_last):
                if (batch.first_sequence, batch.last_sequence) == (first_sequence, last_sequence):
                    return batch
            if is_early or first_sequence != sequence_after(producer.batches[-1].last_sequence, 1):
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        elif is_early:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        elif first_sequence != 0:
            return after_marker_error if epoch == producer.epoch else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if producer.transaction_first_offset is not None and not is_transactional:
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.NONE

    def continues(self, producer_id: int, epoch: int, first_sequence: int, *, is_transactional: bool) -> bool | None:
        """Return whether the next batch of a known producer begins a transaction in this partition.

        None: it is not so plainly the next one; `check` finds out. Else `check` returns NONE for the batch.
        """
        producer = self._by_id.get(producer_id)
        if producer is None or self._verifications or epoch != producer.epoch:
            return None
        batches = producer.batches
        if first_sequence != (batches[-1].last_sequence + 1 if batches else 0):
            return None
        for batch in batches:
            if batch.first_sequence >= first_sequence:  # the sequences began at 0 again: it may be a duplicate
                return None
        if producer.transaction_first_offset is None:
            return is_transactional
        return False if is_transactional else None

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, *, raises_epoch: bool = False
    ) -> ErrorCode:
        """Return NONE if a marker may be appended, or the error of a producer or coordinator that is fenced.

        ``raises_epoch``: whether a marker that ends a transaction must have a new epoch.
        """
        producer = self._by_id.get(producer_id)
        if producer is None:
            return ErrorCode.NONE
        is_late = raises_epoch and epoch == producer.epoch and producer.transaction_first_offset is not None
        if epoch < producer.epoch or is_late:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if coordinator_epoch < producer.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    def begin_verification(self, producer_id: int, epoch: int, first_sequence: int, now_ms: int) -> None:
        """Note that a batch that begins a transaction is verified."""
        known = self._verifications.get(producer_id)
        if known is None:
            self._verifications[producer_id] = Verification(epoch, first_sequence, now_ms)
        elif epoch > known.epoch or (epoch == known.epoch and first_sequence < known.lowest_sequence):
            self._verifications[producer_id] = Verification(epoch, first_sequence, known.since_ms)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Return whether a producer has a transaction of this epoch in the partition."""
        producer = self._by_id.get(producer_id)
        return producer is not None and producer.epoch == epoch and producer.transaction_first_offset is not None

    def add(
        self, producer_id: int, epoch: int, batch: BatchMetadata, now_ms: int, *, is_transactional: bool = False
    ) -> None:
        """Add a batch that was appended. A new epoch replaces the batches of the old one."""
        producer = self._by_id.get(producer_id)
        if producer is None:
            producer = self._by_id[producer_id] = ProducerState(epoch)
        elif epoch != producer.epoch:
            producer.raise_epoch(epoch)
        producer.batches.append(batch)
        producer.last_append_ms = now_ms
        producer.last_timestamp_ms = batch.timestamp_ms
        if self._verifications:
            self._verifications.pop(producer_id, None)
        if is_transactional and producer.transaction_first_offset is None:
            producer.transaction_first_offset = batch.base_offset

    def add_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, now_ms: int, offset: int) -> None:
        """Add a marker that was appended: it ends the transaction, and its epoch is that of the producer."""
        producer = self._by_id.get(producer_id)
        if producer is None:
            producer = self._by_id[producer_id] = ProducerState(epoch)
        producer.raise_epoch(epoch)
        producer.coordinator_epoch = coordinator_epoch
        producer.marker_offset = offset
        producer.transaction_first_offset = None
        self._verifications.pop(producer_id, None)
        producer.last_append_ms = producer.last_timestamp_ms = now_ms

    def items(self) -> list[tuple[int, ProducerState]]:
        """Return the producers in the order of their ids."""
        return sorted(self._by_id.items())

    def clear(self) -> None:
        """Remove all producers."""
        self._by_id.clear()
        self._verifications.clear()

    def lose(self, producer_id: int, epoch: int, first_sequence: int) -> None:
        """Remove a producer whose batch or marker was not written. It repeats a batch before others that follow it."""
        producer = self._by_id.pop(producer_id, None)
        if first_sequence != NO_SEQUENCE:
            since_ms = 0 if producer is None else producer.last_append_ms
            self.begin_verification(producer_id, epoch, first_sequence, since_ms)

    def remove_expired(self, before_ms: int) -> None:
        """Remove the producers without a transaction, and without an append since a time
        (`producer.id.expiration.ms`)."""
        expired = [
            producer_id
            for producer_id, producer in self._by_id.items()
            if producer.last_append_ms < before_ms and producer.transaction_first_offset is None
        ]
        for producer_id in expired:
            del self._by_id[producer_id]
        if self._verifications:
            self._verifications = {
                producer_id: one for producer_id, one in self._verifications.items() if one.since_ms > before_ms
            }


def sequence_after(sequence: int, count: int) -> int:
    """Return the sequence number ``count`` records after ``sequence``; after 2^31 - 1 follows 0."""
    return (sequence + count) % SEQUENCE_MODULUS
