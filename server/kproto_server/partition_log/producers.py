"""Idempotent producers: which batch comes next, which came before, and which can't be (BA-65).

Theory of operation. A producer that was given an id numbers its records in each partition. The broker keeps the last
five batches of every producer: a batch that it has already is answered as it was then and written no more, one that
begins where the last one ended is written, and any other means that something was lost on the way. A new epoch begins
anew at 0. Sequence numbers are 31 bits and start over.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from kproto.codes import ErrorCode

BATCHES_KEPT = 5
"""As many as a producer may have in flight."""
SEQUENCE_MODULUS = 2**31
NO_PRODUCER_ID = -1


class Written(NamedTuple):
    """One batch of a producer, as it was written."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


class Producer:
    """What a partition knows of one producer."""

    __slots__ = ("batches", "epoch", "last_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch: int = epoch
        self.batches: deque[Written] = deque(maxlen=BATCHES_KEPT)
        self.last_ms: int = 0
        """When it last wrote; one that is silent for long enough is forgotten."""


class Producers:
    """The producers of one partition."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[int, Producer] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def check(
        self, producer_id: int, epoch: int, first_sequence: int, count: int, *, refuses_unknown: bool
    ) -> ErrorCode | Written:
        """Say whether a batch of ``count`` records may be written now: an error (0: it may), or what it repeats.

        ``refuses_unknown``: a producer that is not known must begin with 0, as releases up to 2.4 have it.
        """
        producer = self._by_id.get(producer_id)
        if producer is None:
            lost = refuses_unknown and first_sequence != 0
            return ErrorCode.UNKNOWN_PRODUCER_ID if lost else ErrorCode.NONE
        if epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if epoch > producer.epoch or not producer.batches:
            return ErrorCode.NONE if first_sequence == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        last_sequence = sequence_after(first_sequence, count - 1)
        for written in producer.batches:
            if (written.first_sequence, written.last_sequence) == (first_sequence, last_sequence):
                return written
        newest = producer.batches[-1].last_sequence
        if first_sequence == sequence_after(newest, 1):
            return ErrorCode.NONE
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def written(self, producer_id: int, epoch: int, batch: Written, now_ms: int) -> None:
        """Take note of a batch that the log has."""
        producer = self._by_id.get(producer_id)
        if producer is None or epoch != producer.epoch:
            producer = self._by_id[producer_id] = Producer(epoch)
        producer.batches.append(batch)
        producer.last_ms = now_ms

    def items(self) -> list[tuple[int, Producer]]:
        """Return the producers by their ids."""
        return sorted(self._by_id.items())

    def forget(self, producer_id: int) -> None:
        """Forget one: what it wrote last is not in the log after all."""
        self._by_id.pop(producer_id, None)

    def forget_silent(self, before_ms: int) -> None:
        """Forget those that have not written since a time (`producer.id.expiration.ms`)."""
        for producer_id in [id_ for id_, producer in self._by_id.items() if producer.last_ms < before_ms]:
            del self._by_id[producer_id]


def sequence_after(sequence: int, count: int) -> int:
    """Return the sequence number so many records later; they start over at 2^31."""
    return (sequence + count) % SEQUENCE_MODULUS
