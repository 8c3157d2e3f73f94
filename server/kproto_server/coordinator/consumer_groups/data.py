"""The state of a consumer group, as values that never change: each change makes new ones."""

from __future__ import annotations

import enum
from dataclasses import KW_ONLY, dataclass, field
from dataclasses import replace as replace
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.epoch_groups.requests import JOIN_EPOCH
from kproto_server.coordinator.groups import Member

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Assignment = dict[bytes, frozenset[int]]
"""Partitions by topic id, without empty sets. Never changed in place."""

NO_PARTITIONS: frozenset[int] = frozenset()

PartitionEpochs = dict[bytes, dict[int, int]]
"""Since which epoch a member has each partition, by topic id and index. Never changed in place."""


class MemberState(enum.IntEnum):
    """How far a member is on its way to the target assignment; the number is the one in the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """The member has to revoke partitions first."""
    UNRELEASED_PARTITIONS = 2
    """Other members still have partitions of its target."""
    UNKNOWN = 127


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class ConsumerMember(Member):
    """A member of a consumer group. ``protocols`` and ``session_timeout_ms`` are those of a classic member only."""

    _: KW_ONLY
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    speaks_classic: bool = False
    rack_id: str | None = None
    topics: frozenset[str] = frozenset()
    """Subscribed topics by name."""
    regex: str | None = ""
    """A regular expression of subscribed topics; empty or None: none."""
    assignor: str | None = None
    """The server assignor that the member prefers."""
    assigned: Assignment = field(default_factory=dict)
    """What the member owns, or receives with the response to its heartbeat."""
    revoking: Assignment = field(default_factory=dict)
    """What the member still owns and has to revoke."""
    partition_epochs: PartitionEpochs = field(default_factory=dict)
    """For the partitions of both."""

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch


NO_VERSION = -1


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched."""

    topics: frozenset[str]
    version: int
    """The version of the topics at that time, which rises with each change of them. `NO_VERSION`: unknown."""
    timestamp_ms: int


class GroupData(NamedTuple):
    """All of a group that its log has."""

    epoch: int = 0
    metadata_hash: int = 0
    """A hash of the subscribed topics (`topics.metadata_hash`); 0: there are none."""
    members: Mapping[str, ConsumerMember] = {}
    """Members by id, in the order in which they joined."""
    assignment_epoch: int = 0
    """The group epoch for which the targets were computed."""
    targets: Mapping[str, Assignment] = {}
    """The target assignment, by member id."""
    resolved: Mapping[str, ResolvedRegex] = {}
    """What the subscribed regular expressions matched."""
    assignment_timestamp_ms: int = 0
    """When the targets were computed."""


NO_DATA = GroupData()


def with_member(members: Mapping[str, ConsumerMember], member: ConsumerMember) -> dict[str, ConsumerMember]:
    """Return a copy with a member added or replaced."""
    return {**members, member.member_id: member}


def partition_count(assignment: Assignment) -> int:
    """Return the number of partitions of an assignment."""
    return sum(map(len, assignment.values()))


def subscribed_topics(data: GroupData) -> frozenset[str]:
    """Return the topics that any member subscribes to, by name or by a regular expression."""
    return frozenset().union(*{topics_of(member, data) for member in data.members.values()})


def topics_of(member: ConsumerMember, data: GroupData) -> frozenset[str]:
    """Return the topics that a member subscribes to."""
    resolved = data.resolved.get(member.regex) if member.regex else None
    if resolved is None:
        return member.topics
    return member.topics | resolved.topics if member.topics else resolved.topics


def shared_topics(names: Collection[str], members: Mapping[str, ConsumerMember]) -> frozenset[str]:
    """Return topics as a set; that of another member if it is equal, so that equal sets are compared once."""
    topics = frozenset(names)
    hash(topics)  # sets with other hashes are not compared
    return next((member.topics for member in members.values() if member.topics == topics), topics)
