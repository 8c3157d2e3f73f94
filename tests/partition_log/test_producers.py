"""Idempotent producers (BA-65)."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto_server.partition_log.producers import SEQUENCE_MODULUS, Producers, Written, sequence_after

PRODUCER, EPOCH = 7, 3
LAST = SEQUENCE_MODULUS - 1


def producers_with(*sizes: int, first_sequence: int = 0) -> Producers:
    """Return producers of which one has written batches of these sizes, at offsets from 100."""
    producers = Producers()
    sequence, offset = first_sequence, 100
    for size in sizes:
        last = sequence_after(sequence, size - 1)
        producers.written(PRODUCER, EPOCH, Written(sequence, last, offset, 0), now_ms=1)
        sequence, offset = sequence_after(sequence, size), offset + size
    return producers


def check(producers: Producers, first_sequence: int, count: int = 1, epoch: int = EPOCH) -> ErrorCode | Written:
    return producers.check(PRODUCER, epoch, first_sequence, count, refuses_unknown=False)


def test_batches_follow_one_another() -> None:
    producers = producers_with(10, 5)
    assert check(producers, 15) == ErrorCode.NONE
    assert check(producers, 16) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_is_there_is_answered_as_it_was_then() -> None:
    producers = producers_with(10, 5)
    assert check(producers, 0, 10) == Written(0, 9, 100, 0)
    assert check(producers, 10, 5) == Written(10, 14, 110, 0)
    assert check(producers, 10, 4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_only_the_last_five_batches_are_known() -> None:
    producers = producers_with(1, 1, 1, 1, 1, 1)
    assert check(producers, 1) == Written(1, 1, 101, 0)
    assert check(producers, 0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # not 46: measured on 2.1.1, 4.4.0


def test_sequences_start_over() -> None:
    producers = producers_with(2, first_sequence=LAST)
    assert check(producers, 1) == ErrorCode.NONE
    assert check(producers, LAST, 2) == Written(LAST, 0, 100, 0)
    assert sequence_after(LAST, 1) == 0


@pytest.mark.parametrize(
    ("epoch", "first_sequence", "expected"),
    [
        (EPOCH - 1, 10, ErrorCode.INVALID_PRODUCER_EPOCH),
        (EPOCH + 1, 0, ErrorCode.NONE),
        (EPOCH + 1, 10, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
)
def test_an_epoch_begins_anew(epoch: int, first_sequence: int, expected: ErrorCode) -> None:
    assert check(producers_with(10), first_sequence, epoch=epoch) == expected


@pytest.mark.parametrize(
    ("refuses_unknown", "expected"), [(True, ErrorCode.UNKNOWN_PRODUCER_ID), (False, ErrorCode.NONE)]
)
def test_an_unknown_producer_begins_anywhere_in_newer_releases(refuses_unknown: bool, expected: ErrorCode) -> None:
    producers = Producers()
    assert producers.check(1, 0, 5, 1, refuses_unknown=refuses_unknown) == expected
    assert producers.check(1, 0, 0, 1, refuses_unknown=refuses_unknown) == ErrorCode.NONE


def test_silent_producers_are_forgotten() -> None:
    producers = producers_with(1)
    producers.forget_silent(1)
    assert len(producers) == 1
    producers.forget_silent(2)
    assert len(producers) == 0
