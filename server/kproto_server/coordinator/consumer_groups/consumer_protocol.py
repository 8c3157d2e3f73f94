"""What classic members of a group say and get: subscriptions and assignments by topic name, as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import DecodeError, TooManyElements
from kproto.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    encode_member_data,
    read_assignment,
    read_subscription,
)
from kproto_server.coordinator.consumer_groups.data import NO_PARTITIONS, Assignment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.coordinator.coordinator import GroupCoordinator

NEWEST_VERSION = 3


class Subscription(NamedTuple):
    """What a classic member subscribes to and owns."""

    topics: frozenset[str]
    owned: Assignment
    rack_id: str | None


def subscription_of(coordinator: GroupCoordinator, metadata: bytes) -> Subscription | None:
    """Return the subscription in a member's metadata; None if it is malformed."""
    try:
        _, read = read_subscription(metadata)
    except (DecodeError, TooManyElements):
        return None
    return Subscription(frozenset(read.topics), _by_id(coordinator, read.owned_partitions), read.rack_id)


class GivenAssignment(NamedTuple):
    """What the leader of a classic group has assigned to a member."""

    partitions: Assignment
    user_data: bytes


def assignment_of(coordinator: GroupCoordinator, assignment: bytes) -> GivenAssignment | None:
    """Return an assignment from a classic group; None if it is malformed."""
    if not assignment:
        return GivenAssignment({}, b"")
    try:
        _, read = read_assignment(assignment)
    except (DecodeError, TooManyElements):
        return None
    return GivenAssignment(_by_id(coordinator, read.assigned_partitions), read.user_data or b"")


def assignment_bytes(coordinator: GroupCoordinator, assignment: Assignment, metadata: bytes) -> bytes:
    """Return an assignment for a classic member, in the version of its metadata."""
    names = {topic.topic_id: name for name, topic in coordinator.topics.items()} if assignment else {}
    partitions = tuple(
        TopicPartition(topic=names[topic_id], partitions=tuple(sorted(indexes)))
        for topic_id, indexes in assignment.items()
        if topic_id in names
    )
    version = int.from_bytes(metadata[:2], "big", signed=True)
    return encode_member_data(
        ConsumerProtocolAssignment(assigned_partitions=partitions), max(0, min(version, NEWEST_VERSION))
    )


def _by_id(coordinator: GroupCoordinator, topics: Iterable[TopicPartition]) -> Assignment:
    """Return partitions by topic id; topics that do not exist are left out."""
    found: Assignment = {}
    for one in topics:
        topic = coordinator.topics.get(one.topic)
        if topic is not None and one.partitions:
            found[topic.topic_id] = found.get(topic.topic_id, NO_PARTITIONS) | frozenset(one.partitions)
    return found
