"""The hash of a group's subscribed topics is the one that a real broker has in its log (KIP-1101)."""

from __future__ import annotations

from itertools import pairwise

from kproto_server.cluster.topics import Partition, Topic
from kproto_server.coordinator.subscribed_topics import (
    HASHED_IN_STEP,
    hash_in_steps,
    hash_of,
    metadata_hash,
    topic_hash,
)

T = bytes.fromhex("58229b55ccb34a078337a6f8653ff36e")
W = bytes.fromhex("38b42583a8594e76ae0a2d73e65a89e8")


def test_the_hash_of_topics_is_that_of_a_real_broker() -> None:
    """Records of a 4.4.0 without racks."""
    t, w = topic_hash("t", T, ((),) * 3), topic_hash("w", W, ((),) * 7)
    assert hash_of({}) == 0
    assert hash_of({"w": w}) == 8886792483904677051
    assert hash_of({"w": w, "t": t}) == 5400782198982448034


def test_racks_count() -> None:
    assert topic_hash("t", T, (("a", "b"),)) != topic_hash("t", T, (("a",),)) != topic_hash("t", T, ((),))


def test_the_topics_of_a_large_group_are_hashed_once() -> None:
    """With more topics than were kept, each change of topics hashed all of them again, in each group."""
    topics = {
        name: Topic(name, number.to_bytes(16, "big"), [Partition(0, [1], [1], 1)], {}, 0)
        for number, name in enumerate(f"large-{number}" for number in range(5_000))
    }
    asked: list[int] = []

    def rack_of(node_id: int) -> str:
        asked.append(node_id)
        return "r"

    first = metadata_hash(topics, topics, rack_of)
    before = topic_hash.cache_info().misses
    assert metadata_hash(topics, topics, rack_of) == first
    assert topic_hash.cache_info().misses == before
    assert asked == [1, 1]


def test_a_large_subscription_is_hashed_in_steps() -> None:
    """In one step, a heartbeat with 9000 topics held the other clients for 75 ms more."""
    of_step = HASHED_IN_STEP // 2  # each topic has one partition
    topics = {
        name: Topic(name, number.to_bytes(16, "little"), [Partition(0, [1], [1], 1)], {}, 0)
        for number, name in enumerate(f"in-steps-{number}" for number in range(2 * of_step + 1))
    }
    misses = [topic_hash.cache_info().misses]
    for _ in hash_in_steps(tuple(topics), topics, lambda node_id: None):
        misses.append(topic_hash.cache_info().misses)
    assert [after - before for before, after in pairwise(misses)] == [of_step, of_step, 1]
    metadata_hash(topics, topics, lambda node_id: None)
    assert topic_hash.cache_info().misses == misses[-1]


def test_topics_with_many_partitions_are_hashed_in_more_steps_and_repeated_ones_once() -> None:
    """One topic of 2000 partitions, named 10,000 times, took 3 s, and held others for 0.7 s."""
    partitions = [Partition(index, [1], [1], 1) for index in range(HASHED_IN_STEP // 2)]
    topics = {
        name: Topic(name, number.to_bytes(16, "little"), partitions, {}, 0)
        for number, name in enumerate(("wide-0", "wide-1", "wide-2"))
    }
    asked: list[int] = []

    def lookups(names: tuple[str, ...]) -> int:
        lookups_before = len(counted.lookups)
        steps = sum(1 for _ in hash_in_steps(names, counted, lambda node_id: None))
        asked.append(steps)
        return len(counted.lookups) - lookups_before

    counted = Counted(topics)
    once = lookups(("wide-0", "wide-1", "wide-2"))
    assert lookups(("wide-0", "wide-1", "wide-2") * 1000) == once
    assert asked == [2, 2]


class Counted(dict[str, Topic]):
    """Topics that record which names are looked up."""

    def __init__(self, topics: dict[str, Topic]) -> None:
        super().__init__(topics)
        self.lookups: list[str] = []

    def get(self, name: str, default: Topic | None = None) -> Topic | None:  # type: ignore[override]
        self.lookups.append(name)
        return super().get(name, default)
