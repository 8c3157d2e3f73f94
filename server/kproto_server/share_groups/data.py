"""The state of a share group, as immutable values."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.groups import Member

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Assignment = dict[bytes, tuple[int, ...]]
"""Partitions by topic id, in order. Never changed in place."""


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class ShareMember(Member):
    """A member of a share group. Replaced and never changed."""

    _: KW_ONLY
    epoch: int = 0
    previous_epoch: int = 0
    speaks_classic: bool = False
    rack_id: str | None = None
    topics: tuple[str, ...] = ()
    """Subscribed topics by name, sorted."""
    assigned: Assignment = field(default_factory=dict)


class TopicPartitions(NamedTuple):
    """Partitions of one topic whose states were initialized."""

    name: str
    partitions: frozenset[int]


class ShareData(NamedTuple):
    """All of a share group that its log has. Never changed in place."""

    epoch: int
    metadata_hash: int = 0
    members: Mapping[str, ShareMember] = {}
    """Members by id, in the order in which they joined."""
    assignment_epoch: int = 0
    assignment_ms: int = 0
    targets: Mapping[str, Assignment] = {}
    initialized: Mapping[bytes, TopicPartitions] = {}
    """By topic id."""


def topics_of(data: ShareData) -> frozenset[str]:
    """Return the topics that any member subscribes to. Members with the same topics have the same tuple."""
    subscriptions = {id(member.topics): member.topics for member in data.members.values()}
    return frozenset().union(*subscriptions.values())


def shared_topics(names: Collection[str], data: ShareData) -> tuple[str, ...]:
    """Return the topics of a member; those of another member if they are equal, so that they are compared once."""
    topics = tuple(sorted(set(names)))
    known = {id(member.topics): member.topics for member in data.members.values()}
    return next((found for found in known.values() if found == topics), topics)


NO_TOPIC = TopicPartitions("", frozenset())
