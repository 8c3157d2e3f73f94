"""The assignor of share groups, Kafka's `simple`: each partition has members, and each member has partitions.

Theory of operation. With more members than partitions, a partition has several: the *sharing*. Each member has as many
partitions as the others, or one more, and members keep what they have as far as that allows. If all members subscribe
to the same topics, their partitions are shared out together, otherwise topic by topic. Where the result depends on the
order of members, it is that of a Java HashMap as in Kafka; the order of partitions depends on random topic ids there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order
from kproto_server.coordinator.epoch_groups.assigning import Pace
from kproto_server.share_groups.data import NO_TOPIC

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from kproto_server.share_groups.data import Assignment, TopicPartitions

    TopicPartition = tuple[bytes, int]


def assign(
    subscriptions: Mapping[str, tuple[bytes, ...]],
    initialized: Mapping[bytes, TopicPartitions],
    before: Mapping[str, Assignment],
) -> Generator[None, None, dict[str, Assignment]]:
    """Return the target of each member, initialized partitions of its topics, computed in steps.

    ``subscriptions``: topic ids by member; ``before``: the targets until now.
    """
    pace = Pace()
    members = in_hash_order(subscriptions, java_hash)
    subscribers: dict[bytes, list[str]] = {}
    held: dict[bytes, dict[str, Sequence[int]]] = {}
    for member in members:
        for topic_id in set(subscriptions[member]):
            subscribers.setdefault(topic_id, []).append(member)
        for topic_id, indexes in before.get(member, {}).items():
            held.setdefault(topic_id, {})[member] = indexes
        if pace.ends_step(len(subscriptions[member])):
            yield
    topic_ids = sorted(subscribers)
    has_equal_subscriptions = len({frozenset(found) for found in subscriptions.values()}) == 1
    groups = [(topic_ids, members)] if has_equal_subscriptions else [([one], subscribers[one]) for one in topic_ids]
    given: dict[str, list[TopicPartition]] = {member: [] for member in members}
    for topics, subscribed in groups:
        targets = [(topic_id, index) for topic_id in topics for index in sorted(_partitions(initialized, topic_id))]
        holders = _share_out(targets, subscribed, _held_of(topics, held))
        for target, found in holders.items():
            for member in found:
                given[member].append(target)
        if pace.ends_step(len(subscribed) + len(targets)):
            yield
    result: dict[str, Assignment] = {}
    for member, partitions in given.items():
        result[member] = _assignment(partitions)
        if pace.ends_step(len(partitions)):
            yield
    return result


def _partitions(initialized: Mapping[bytes, TopicPartitions], topic_id: bytes) -> frozenset[int]:
    return initialized.get(topic_id, NO_TOPIC).partitions


def _held_of(
    topics: Iterable[bytes], held: Mapping[bytes, Mapping[str, Sequence[int]]]
) -> dict[str, list[TopicPartition]]:
    """Return the partitions of some topics that each member has."""
    found: dict[str, list[TopicPartition]] = {}
    for topic_id in topics:
        for member, indexes in held.get(topic_id, {}).items():
            found.setdefault(member, []).extend([(topic_id, index) for index in sorted(indexes)])
    return found


def _assignment(partitions: Iterable[TopicPartition]) -> Assignment:
    found: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        found.setdefault(topic_id, []).append(index)
    return {topic_id: tuple(indexes) for topic_id, indexes in found.items()}


def _share_out(
    targets: Sequence[TopicPartition], members: Sequence[str], held: Mapping[str, Sequence[TopicPartition]]
) -> dict[TopicPartition, list[str]]:
    """Share partitions of some topics out among their subscribers; ``held``: what members have of these topics."""
    sharing = -(-len(members) // len(targets)) if targets else 0
    total = sharing * len(targets)
    left = {
        member: -(-total * (number + 1) // len(members)) + (-total * number // len(members))
        for number, member in enumerate(members)
    }
    holders: dict[TopicPartition, list[str]] = {target: [] for target in targets}
    for member in members:
        kept = [one for one in held.get(member, ()) if one in holders]
        for one in kept[max(0, len(kept) - left[member]) :]:
            if len(holders[one]) < sharing:
                holders[one].append(member)
                left[member] -= 1
    _fill(holders, sharing, left)
    return holders


def _fill(holders: Mapping[TopicPartition, list[str]], sharing: int, left: dict[str, int]) -> None:
    """Give partitions without enough members to members without enough partitions, in turns.

    ``left``: how many partitions each member still gets.
    """
    unfilled = [member for member, count in left.items() if count > 0]
    position, has_assigned = 0, False
    for found in holders.values():
        while len(found) < sharing and unfilled:
            if position >= len(unfilled):
                if not has_assigned:
                    break
                position, has_assigned = 0, False
            member = unfilled[position]
            if member in found:
                position += 1
                continue
            found.append(member)
            left[member] -= 1
            has_assigned = True
            if left[member] <= 0:
                del unfilled[position]
            else:
                position += 1
