"""Placement of partitions: even, on live brokers first, and the same for the same seed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto_server.cluster.placement import stripe
from tests.cluster.clusters import made, new_cluster


@given(data=st.data())
def test_striping_is_even_and_repeats_no_broker(data: st.DataObject) -> None:
    node_ids = data.draw(st.lists(st.integers(0, 1000), min_size=1, max_size=9, unique=True))
    count = data.draw(st.integers(1, 60))
    factor = data.draw(st.integers(1, len(node_ids)))
    start = data.draw(st.integers(0, 200))
    placed = stripe(node_ids, count, factor, start=start)
    assert len(placed) == count
    assert all(len(set(replicas)) == factor and set(replicas) <= set(node_ids) for replicas in placed)
    for load in (Counter(r[0] for r in placed), Counter(r for replicas in placed for r in replicas)):
        assert max(load.values()) - min(load.get(node_id, 0) for node_id in node_ids) <= factor + 1


def test_consecutive_partitions_have_different_leaders() -> None:
    placed = stripe([1, 2, 3], 3, 1, start=1)
    assert [replicas[0] for replicas in placed] == [2, 3, 1]


def test_added_partitions_continue_the_stripe() -> None:
    whole = stripe([1, 2, 3], 7, 2, start=1)
    assert stripe([1, 2, 3], 4, 2, start=1) + stripe([1, 2, 3], 3, 2, start=1, first_partition=4) == whole


def test_the_same_seed_gives_the_same_cluster() -> None:
    def choices(seed: int) -> tuple[object, ...]:
        cluster = new_cluster(seed=seed)
        topic = made(cluster, "t", 6, 2)
        return cluster.cluster_id, topic.topic_id, [partition.replicas for partition in topic.partitions]

    assert choices(1) == choices(1)
    assert choices(1) != choices(2)


def test_cluster_ids_have_kafkas_format() -> None:
    assert len(new_cluster().cluster_id) == 22
    assert set(new_cluster().cluster_id) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_kraft_places_replicas_on_a_stopped_broker_if_necessary() -> None:
    """BA-52: a registered broker counts; live brokers lead and are in sync."""
    cluster = new_cluster(3)
    cluster.stop_node(2)
    topic = made(cluster, "t", 4, 3)
    for partition in topic.partitions:
        assert sorted(partition.replicas) == [1, 2, 3]
        assert sorted(partition.isr) == [1, 3]
        assert partition.leader in (1, 3)
    cluster.start_node(2)
    assert all(sorted(partition.isr) == [1, 2, 3] for partition in topic.partitions)


@pytest.mark.parametrize("kafka_version", ["2.1", "4.4"])
def test_no_replica_is_placed_on_a_stopped_broker_if_live_ones_suffice(kafka_version: str) -> None:
    cluster = new_cluster(3, kafka_version=kafka_version)
    cluster.stop_node(2)
    topic = made(cluster, "t", 4, 2)
    assert all(2 not in partition.replicas for partition in topic.partitions)
