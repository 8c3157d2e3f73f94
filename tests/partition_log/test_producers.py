"""Idempotent producers (BA-65)."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto_server.partition_log.producers import SEQUENCE_MODULUS, BatchMetadata, ProducerStates, sequence_after

PRODUCER, EPOCH = 7, 3
LAST = SEQUENCE_MODULUS - 1


def producers_with(*sizes: int, first_sequence: int = 0) -> ProducerStates:
    """Return the states of one producer that has appended batches of these sizes, from offset 100 on."""
    producers = ProducerStates()
    sequence, offset = first_sequence, 100
    for size in sizes:
        last = sequence_after(sequence, size - 1)
        producers.add(PRODUCER, EPOCH, BatchMetadata(sequence, last, offset, 0), now_ms=1)
        sequence, offset = sequence_after(sequence, size), offset + size
    return producers


def check(
    producers: ProducerStates, first_sequence: int, count: int = 1, epoch: int = EPOCH
) -> ErrorCode | BatchMetadata:
    return producers.check(PRODUCER, epoch, first_sequence, count, refuses_unknown=False)


def test_the_next_sequence_is_accepted() -> None:
    producers = producers_with(10, 5)
    assert check(producers, 15) == ErrorCode.NONE
    assert check(producers, 16) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_duplicate_batch_returns_its_first_append() -> None:
    producers = producers_with(10, 5)
    assert check(producers, 0, 10) == BatchMetadata(0, 9, 100, 0)
    assert check(producers, 10, 5) == BatchMetadata(10, 14, 110, 0)
    assert check(producers, 10, 4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_only_the_last_five_batches_count_as_duplicates() -> None:
    producers = producers_with(1, 1, 1, 1, 1, 1)
    assert check(producers, 1) == BatchMetadata(1, 1, 101, 0)
    assert (
        check(producers, 0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )  # not DUPLICATE_SEQUENCE_NUMBER: measured on 2.1.1 and 4.4.0


def test_sequences_wrap_around() -> None:
    producers = producers_with(2, first_sequence=LAST)
    assert check(producers, 1) == ErrorCode.NONE
    assert check(producers, LAST, 2) == BatchMetadata(LAST, 0, 100, 0)
    assert sequence_after(LAST, 1) == 0


@pytest.mark.parametrize(
    ("epoch", "first_sequence", "expected"),
    [
        (EPOCH - 1, 10, ErrorCode.INVALID_PRODUCER_EPOCH),
        (EPOCH + 1, 0, ErrorCode.NONE),
        (EPOCH + 1, 10, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
)
def test_a_new_epoch_begins_at_sequence_0(epoch: int, first_sequence: int, expected: ErrorCode) -> None:
    assert check(producers_with(10), first_sequence, epoch=epoch) == expected


@pytest.mark.parametrize(
    ("refuses_unknown", "expected"), [(True, ErrorCode.UNKNOWN_PRODUCER_ID), (False, ErrorCode.NONE)]
)
def test_an_unknown_producer_may_begin_at_any_sequence_from_2_5_on(refuses_unknown: bool, expected: ErrorCode) -> None:
    producers = ProducerStates()
    assert producers.check(1, 0, 5, 1, refuses_unknown=refuses_unknown) == expected
    assert producers.check(1, 0, 0, 1, refuses_unknown=refuses_unknown) == ErrorCode.NONE


def test_idle_producers_expire() -> None:
    producers = producers_with(1)
    producers.remove_expired(1)
    assert len(producers) == 1
    producers.remove_expired(2)
    assert len(producers) == 0
