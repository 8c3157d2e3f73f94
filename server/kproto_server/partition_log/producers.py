"""Idempotent producers: which batch is the next one, a duplicate, or out of order (BA-65).

Theory of operation. A producer with a producer id numbers its records in each partition; a batch has the sequence
number of its first record. The partition keeps the last five batches of each producer, as many as the producer may have
in flight. A batch that equals one of them is a duplicate: the response has the offset of the first append, and nothing
is appended. A batch whose first sequence follows the last one is appended. Any other batch shows that batches were
lost. A new producer epoch begins at sequence 0. Sequence numbers have 31 bits and wrap around.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from kproto.codes import ErrorCode

BATCHES_MAX = 5
"""The greatest max.in.flight.requests.per.connection of an idempotent producer."""
SEQUENCE_MODULUS = 2**31
NO_PRODUCER_ID = -1


class BatchMetadata(NamedTuple):
    """An appended batch of a producer."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


class ProducerState:
    """The last batches of one producer in one partition."""

    __slots__ = ("batches", "epoch", "last_append_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch: int = epoch
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_MAX)
        self.last_append_ms: int = 0
        """The time of the last append, after which the producer expires."""


class ProducerStates:
    """The producers of one partition."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[int, ProducerState] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def check(
        self, producer_id: int, epoch: int, first_sequence: int, count: int, *, refuses_unknown: bool
    ) -> ErrorCode | BatchMetadata:
        """Return NONE if a batch of ``count`` records may be appended, an error, or the batch that it duplicates.

        ``refuses_unknown``: whether the first batch of an unknown producer must have sequence 0 (releases up to 2.4).
        """
        producer = self._by_id.get(producer_id)
        if producer is None:
            is_refused = refuses_unknown and first_sequence != 0
            return ErrorCode.UNKNOWN_PRODUCER_ID if is_refused else ErrorCode.NONE
        if epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if epoch > producer.epoch or not producer.batches:
            return ErrorCode.NONE if first_sequence == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        last_sequence = sequence_after(first_sequence, count - 1)
        for batch in producer.batches:
            if (batch.first_sequence, batch.last_sequence) == (first_sequence, last_sequence):
                return batch
        newest = producer.batches[-1].last_sequence
        if first_sequence == sequence_after(newest, 1):
            return ErrorCode.NONE
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def add(self, producer_id: int, epoch: int, batch: BatchMetadata, now_ms: int) -> None:
        """Add a batch that was appended. A new epoch replaces the batches of the old one."""
        producer = self._by_id.get(producer_id)
        if producer is None or epoch != producer.epoch:
            producer = self._by_id[producer_id] = ProducerState(epoch)
        producer.batches.append(batch)
        producer.last_append_ms = now_ms

    def items(self) -> list[tuple[int, ProducerState]]:
        """Return the producers in the order of their ids."""
        return sorted(self._by_id.items())

    def remove(self, producer_id: int) -> None:
        """Remove a producer whose last batch the log failed to write."""
        self._by_id.pop(producer_id, None)

    def remove_expired(self, before_ms: int) -> None:
        """Remove the producers without an append since a time (`producer.id.expiration.ms`)."""
        for producer_id in [id_ for id_, producer in self._by_id.items() if producer.last_append_ms < before_ms]:
            del self._by_id[producer_id]


def sequence_after(sequence: int, count: int) -> int:
    """Return the sequence number ``count`` records after ``sequence``; after 2^31 - 1 follows 0."""
    return (sequence + count) % SEQUENCE_MODULUS
