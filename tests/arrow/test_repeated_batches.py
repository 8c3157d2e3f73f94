"""Batches that a later one replaces are left out, and nothing else changes: rows, counts and reported damage."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.arrow import repeated_batches
from kproto.arrow.batch_table import BatchTable
from kproto.arrow.repeated_batches import batches_represented
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.compression import Compression
from kproto.records.coordinator import encode_key, encode_value
from kproto.records.group_records import GroupMetadataKey
from kproto.records.offset_records import OffsetCommitKey, OffsetCommitValue
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from tests.arrow.test_decoders_agree import blocks_of, both, check_last, common_damage, request_for, with_right_crc

NOW = 1_767_225_600_000
Keys = Sequence[tuple[str, str, int]]


@pytest.fixture(autouse=True)
def compare_small_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_batches, "CLASS_RECORDS_MIN", 2)


class Log:
    """A log that grows by batches of commits."""

    def __init__(self) -> None:
        self.data = b""
        self.starts: list[int] = []
        self.next_offset = 0

    def commit(self, keys: Keys, number: int, *, metadata: str = "", version: int = 3, **options: object) -> None:
        """Append a batch; ``number`` is in all that may differ between repeated batches."""
        value = OffsetCommitValue(
            offset=number,
            leader_epoch=number,
            metadata=metadata,
            commit_timestamp=NOW + number,
            expire_timestamp=NOW + number,
            topic_id=bytes(16),
        )
        self.append([(encode_key(_key(*key)), encode_value(value, version)) for key in keys], number, **options)

    def append(self, pairs: Sequence[tuple[bytes, bytes | None]], number: int, **options: object) -> None:
        records = [
            Record(key, value, (), NOW + number, self.next_offset + index) for index, (key, value) in enumerate(pairs)
        ]
        self.starts.append(len(self.data))
        self.data += build_record_batch(records, **options)  # type: ignore[arg-type]
        self.next_offset += len(pairs)

    def represented(self, start: int = 0, end: int | None = None) -> list[int]:
        """Return how many batches each batch stands for, and check the rows beside the other decoder's."""
        request = request_for(self.data, start=start, end=end, only_last=True)
        (block,) = blocks_of(self.data)
        found: list[int] = batches_represented(BatchTable(block, start), request).tolist()
        last = both(self.data, start=start, end=end, only_last=True)
        check_last(last, both(self.data, start=start, end=end))
        return found


def _key(group: str, topic: str, partition: int) -> OffsetCommitKey:
    return OffsetCommitKey(group=group, topic=topic, partition=partition)


A: Keys = [("group-a", "t", 0), ("group-a", "t", 1)]
B: Keys = [("group-b", "t", 0), ("group-b", "t", 1)]


@pytest.mark.parametrize("version", range(5))
def test_a_batch_stands_for_those_with_the_same_keys(version: int) -> None:
    log = Log()
    for number in range(5):
        log.commit(A, number, version=version, metadata=f"text {number}")
        log.commit(B, 100 + number, version=version, metadata=f"text {number}")
    assert log.represented() == [0] * 8 + [5, 5]


def test_tombstones_repeat_too() -> None:
    log = Log()
    for number in range(3):
        log.append([(encode_key(_key(*key)), None) for key in A], number)
    log.commit(A, 9)
    assert log.represented() == [0, 0, 3, 1]


def test_the_same_size_is_not_the_same_layout() -> None:
    """The group's id is longer by what the topic's name is shorter; in the second pair, the key and the metadata."""
    log = Log()
    log.commit([("group-a", "topic", 0)] * 2, 1)
    log.commit([("group-aa", "topi", 0)] * 2, 2)
    log.commit([("group-a", "topic", 0)] * 2, 3)
    assert log.represented() == [0, 1, 2]
    log = Log()
    log.commit([("group-a", "topic", 0)] * 2, 1, metadata="1234")
    log.commit([("group-a", "topic12", 0)] * 2, 2, metadata="12")
    log.commit([("group-a", "topic", 0)] * 2, 3, metadata="1234")
    assert log.represented() == [0, 1, 2]


def test_other_records_transactions_and_compressed_batches_are_decoded() -> None:
    log = Log()
    for number in range(3):
        log.commit(A, number, producer_id=7, producer_epoch=0, flags=TRANSACTIONAL)
        log.commit(A, number, compression=Compression.GZIP)
        log.append([(encode_key(GroupMetadataKey(group="g")), None)] * 2, number)
        log.append([(b"\x00\x63any", b"thing")] * 2, number)
    assert log.represented() == [1] * 12


def test_only_batches_within_the_window_are_left_out() -> None:
    log = Log()
    for number in range(6):
        log.commit(A, number)
    assert log.represented() == [0, 0, 0, 0, 0, 6]
    assert log.represented(start=3) == [1, 0, 0, 0, 4]
    assert log.represented(start=2, end=9) == [0, 0, 3, 1, 1]


def test_few_records_are_not_worth_a_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_batches, "CLASS_RECORDS_MIN", 13)
    log = Log()
    for number in range(6):
        log.commit(A, number)
    assert log.represented() == [1] * 6


def random_log(seed: int) -> Log:
    """Return a log of some requests that repeat with other numbers, and of some that do not."""
    chance = random.Random(seed)  # noqa: S311
    names = [f"{chance.choice('abc')}{'x' * chance.randrange(3)}" for _ in range(4)]
    requests = [
        [(chance.choice(names), chance.choice(names), chance.randrange(3)) for _ in range(chance.randint(1, 4))]
        for _ in range(chance.randint(1, 5))
    ]
    log = Log()
    for number in range(chance.randint(2, 40)):
        keys, roll = chance.choice(requests), chance.random()
        if roll < 0.1:
            log.append([(encode_key(_key(*key)), None) for key in keys], number)
        elif roll < 0.2:
            log.commit(keys, number, producer_id=7, producer_epoch=0, flags=TRANSACTIONAL)
        else:
            version = 4 if roll < 0.3 else chance.choice((1, 3))
            log.commit(keys, number, version=version, metadata=chance.choice(("", "m", "n", "long")))
    return log


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_random_logs_have_the_same_last_rows_and_counts(seed: int) -> None:
    log = random_log(seed)
    assert sum(log.represented()) == len(log.starts)


def test_random_logs_have_repeated_batches() -> None:
    found = np.concatenate([random_log(seed).represented() for seed in range(50)])
    assert 0.2 < np.mean(found == 0) < 0.8


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_damage_in_a_repeated_batch_is_reported(seed: int, where: float, bit: int) -> None:
    """A bit differs, and the checksum is right: both decoders say the same."""
    log = random_log(seed)
    data = bytearray(log.data)
    data[int(where * len(data))] ^= 1 << bit
    common_damage(with_right_crc(bytes(data), log.starts), 0, only_last=True)


def test_a_wrong_size_in_a_repeated_batch_is_damage() -> None:
    log = Log()
    for number in range(4):
        log.commit(A, number, metadata="text")
    data = bytearray(log.data)
    at = data.index(b"text") - 1
    assert data[at] == 4
    data[at] = 5
    assert common_damage(with_right_crc(bytes(data), log.starts), 0, only_last=True) is not None
