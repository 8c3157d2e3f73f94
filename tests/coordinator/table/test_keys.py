"""Keys as bytes."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kproto_server.coordinator.table.keys import decode_keys, encode_keys
from kproto_server.coordinator.table.topics import PARTITIONS, base_of

partitions = st.one_of(st.integers(0, 40), st.integers(-(2**31), 2**31 - 1), st.sampled_from([-(2**31), 2**31 - 1]))
topics = st.one_of(st.integers(0, 3), st.integers(0, 2**20))
keys = st.sets(st.builds(lambda topic, partition: topic * PARTITIONS + partition, topics, partitions), max_size=60)


@given(keys)
def test_keys_survive_a_round_trip(some: set[int]) -> None:
    sorted_entries = tuple(sorted(some))
    assert decode_keys(encode_keys(sorted_entries)) == sorted_entries


@pytest.mark.parametrize(
    ("keys", "size"),
    [
        ((0,), 3),
        (tuple(range(16)), 3),
        ((127 * PARTITIONS,), 3),
        (tuple(range(0, 32, 2)), 48),
        ((*range(100), *range(PARTITIONS, PARTITIONS + 100)), 6),
    ],
)
def test_consecutive_keys_take_no_more_bytes(keys: tuple[int, ...], size: int) -> None:
    assert len(encode_keys(keys)) == size


@given(topics, partitions)
def test_a_key_has_its_topic(topic: int, partition: int) -> None:
    assert base_of(topic * PARTITIONS + partition) == topic * PARTITIONS
