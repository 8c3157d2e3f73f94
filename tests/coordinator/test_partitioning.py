"""LF-40 and LF-41: the hash that selects a group's offsets partition, and the node that owns the group."""

from __future__ import annotations

import pytest

from kproto.jvm.arithmetic import java_hash
from kproto.records.partitioning import partition_for
from tests.coordinator.broker_state import new_state


@pytest.mark.parametrize(
    ("group_id", "hash_code", "partition"),
    [
        ("", 0, 0),
        ("g", 103, 3),
        ("g1", 3242, 42),
        ("test-group", 627841412, 12),
        ("my-group", -1906497762, 12),
        ("console-consumer-12345", 158455506, 6),
        ("polygenelubricants", -2147483648, 0),
        ("grüße", 98768023, 23),
        ("\U0001f600", 1772899, 49),
        ("connect-cluster", 1440343063, 13),
    ],
)
def test_hash_and_partition_are_those_of_java(group_id: str, hash_code: int, partition: int) -> None:
    """LF-41, with 50 partitions; g1 was measured on a real broker."""
    assert java_hash(group_id) == hash_code
    assert partition_for(group_id, 50) == partition


def test_hash_counts_utf_16_units() -> None:
    """LF-40: a character outside of the basic plane is two units, high surrogate first."""
    assert java_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


def test_partition_follows_the_number_of_partitions() -> None:
    """LF-40: the number of partitions is that of the existing topic."""
    assert [partition_for("g", count) for count in (1, 2, 50, 100)] == [0, 1, 3, 3]


def test_only_the_leader_owns_a_partition() -> None:
    """OC-10 row 12."""
    state = new_state(node_count=3)
    partition = state.cluster.topics["__consumer_offsets"].partitions[42]
    partition.leader = 2
    owners = [state.coordinator.owned_partition(state.cluster.nodes[node_id], "g1") for node_id in (1, 2, 3)]
    assert owners == [None, 42, None]


def test_partition_without_leader_has_no_owner() -> None:
    """OC-10 row 12."""
    state = new_state()
    state.cluster.topics["__consumer_offsets"].partitions[42].leader = -1
    assert state.coordinator.owned_partition(state.cluster.nodes[1], "g1") is None


def test_no_group_is_owned_before_there_is_an_offsets_topic() -> None:
    """OC-10 row 12, measured on 2.1.1."""
    state = new_state(with_offsets_topic=False)
    assert state.coordinator.owned_partition(state.cluster.nodes[1], "g1") is None
