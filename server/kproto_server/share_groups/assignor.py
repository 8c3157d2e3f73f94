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
from kproto_server.share_groups.data import NO_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kproto_server.share_groups.data import Assignment, TopicPartitions

    TopicPartition = tuple[bytes, int]


def assign(
    subscriptions: Mapping[str, tuple[bytes, ...]],
    initialized: Mapping[bytes, TopicPartitions],
    before: Mapping[str, Assignment],
) -> dict[str, Assignment]:
    """Return the target of each member: initialized partitions of its topics.

    ``subscriptions``: topic ids by member; ``before``: the targets until now.
    """
    members = in_hash_order(subscriptions, java_hash)
    held: dict[str, set[TopicPartition]] = {
        member: {(topic_id, index) for topic_id, found in before.get(member, {}).items() for index in found}
        for member in members
    }
    topic_ids = sorted({topic_id for found in subscriptions.values() for topic_id in found})
    groups = (
        [topic_ids] if len({frozenset(found) for found in subscriptions.values()}) == 1 else [[t] for t in topic_ids]
    )
    for topics in groups:
        targets = [(topic_id, index) for topic_id in topics for index in sorted(_partitions(initialized, topic_id))]
        subscribed = [member for member in members if set(topics) <= set(subscriptions[member])]
        _share_out(targets, subscribed, held, frozenset(topics))
    wanted = {member: set(found) for member, found in subscriptions.items()}
    return {member: _assignment(one for one in found if one[0] in wanted[member]) for member, found in held.items()}


def _partitions(initialized: Mapping[bytes, TopicPartitions], topic_id: bytes) -> frozenset[int]:
    return initialized.get(topic_id, NO_TOPIC).partitions


def _assignment(partitions: Iterable[TopicPartition]) -> Assignment:
    found: Assignment = {}
    for topic_id, index in sorted(partitions):
        found[topic_id] = (*found.get(topic_id, ()), index)
    return found


def _share_out(
    targets: Sequence[TopicPartition],
    members: Sequence[str],
    held: dict[str, set[TopicPartition]],
    topics: frozenset[bytes],
) -> None:
    """Share partitions of some topics out among their subscribers; ``held`` has what all members have."""
    sharing = -(-len(members) // len(targets)) if targets else 0
    total = sharing * len(targets)
    counts = {
        member: -(-total * (number + 1) // len(members)) + (-total * number // len(members))
        for number, member in enumerate(members)
    }
    of_topics = {member: sorted(one for one in found if one[0] in topics) for member, found in held.items()}
    holders: dict[TopicPartition, list[str]] = {target: [] for target in targets}
    for member, found in of_topics.items():
        kept = [one for one in found if one in holders]
        kept = kept[max(0, len(kept) - counts.get(member, 0)) :]
        for one in found:
            held[member].discard(one)
        for one in kept:
            if len(holders[one]) < sharing:
                holders[one].append(member)
                held[member].add(one)
    _fill(holders, sharing, counts, held, topics)


def _fill(
    holders: dict[TopicPartition, list[str]],
    sharing: int,
    counts: dict[str, int],
    held: dict[str, set[TopicPartition]],
    topics: frozenset[bytes],
) -> None:
    """Give partitions without enough members to members without enough partitions, in turns."""

    def has(member: str) -> int:
        return sum(1 for one in held[member] if one[0] in topics)

    unfilled = [member for member, count in counts.items() if has(member) < count]
    position, has_assigned = 0, False
    for target, found in holders.items():
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
            held[member].add(target)
            has_assigned = True
            if has(member) >= counts[member]:
                del unfilled[position]
            else:
                position += 1
