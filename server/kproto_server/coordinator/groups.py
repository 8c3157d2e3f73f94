"""Groups as the coordinator knows them: state, members, and the times that expiry goes by.

Theory of operation. A group that only commits ("simple") has no members and is Empty for ever; it is made by its first
commit. States and members are there for the groups that will be joined::

    Empty <-> PreparingRebalance -> CompletingRebalance -> Stable,  any of them -> Dead

A Dead group is out of the registry: the next commit or join with its id makes a new one (EX-36).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_GENERATION = -1

Kind = Literal["classic", "consumer"]
"""The protocol that the group's members speak: JoinGroup and SyncGroup, or KIP-848's heartbeat."""


class GroupState(enum.Enum):
    """A state, by Kafka's name for it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Member:
    """One member of a group."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "epoch",
        "group_instance_id",
        "member_id",
        "metadata",
        "speaks_classic",
    )

    def __init__(
        self,
        member_id: str,
        *,
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        metadata: bytes = b"",
        assignment: bytes = b"",
        epoch: int = NO_GENERATION,
        speaks_classic: bool = True,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        """Set for a static member (KIP-345)."""
        self.client_id = client_id
        self.client_host = client_host
        self.metadata = metadata
        """What the member said of itself for the protocol that was chosen."""
        self.assignment = assignment
        self.epoch = epoch
        """Of a member of a consumer group; a classic group has one generation for all."""
        self.speaks_classic = speaks_classic
        """Whether the member of a consumer group still speaks the classic protocol (GP-57)."""


class Group:
    """One group."""

    __slots__ = (
        "_subscribed_topics",
        "_touched",
        "generation",
        "group_id",
        "kind",
        "members",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "sweep_number",
    )

    def __init__(
        self, group_id: str, now_ms: int, kind: Kind = "classic", touched: dict[str, None] | None = None
    ) -> None:
        self.group_id = group_id
        self._touched = touched
        """Of the registry that the group is in."""
        self.kind = kind
        self.state = GroupState.EMPTY
        self.state_timestamp_ms: int | None = now_ms
        """When the group came into its state (EX-11); None if the log does not say (EX-16)."""
        self.protocol_type: str | None = None
        """Set by the first member; None: a simple group (EX-14)."""
        self.protocol_name: str | None = None
        self.generation = 0
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Member id by group instance id."""
        self._subscribed_topics: frozenset[str] | None = None
        self.sweep_number = 0
        """The sweep that looks at the group next, if nobody touches it (`Sweeps`)."""

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        """Enter a state, also the one it is in: the clock of expiry starts anew (EX-11)."""
        self.state = state
        self.state_timestamp_ms = now_ms
        self._touch()

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """Union over the members; None: unknown (EX-22)."""
        return self._subscribed_topics

    @subscribed_topics.setter
    def subscribed_topics(self, topics: frozenset[str] | None) -> None:
        self._subscribed_topics = topics
        self._touch()

    def _touch(self) -> None:
        """Have the next sweep look at the group: what expires of it may have changed."""
        if self._touched is not None:
            self._touched[self.group_id] = None

    def add_member(self, member: Member) -> None:
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers, rather than say Connect workers."""
        return self.kind == "consumer" or self.protocol_type == "consumer"

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether offsets of a topic are in use; an unknown subscription of members is one to everything (EX-22)."""
        if self._subscribed_topics is None:
            return bool(self.members)
        return topic in self._subscribed_topics


class GroupRegistry:
    """The groups that exist."""

    __slots__ = ("_groups", "get", "touched")

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self.get = self._groups.get
        """Return the group with this id, or None. The dictionary's own method: this is on the way of every commit."""
        self.touched: dict[str, None] = {}
        """Groups that the next sweep has to look at."""

    def create(self, group_id: str, now_ms: int, kind: Kind = "classic") -> Group:
        """Make an Empty group in place of any that had this id."""
        group = self._groups[group_id] = Group(group_id, now_ms, kind, self.touched)
        self.touched[group_id] = None
        return group

    def remove(self, group_id: str) -> None:
        """Forget a group; it is Dead for whoever still holds it."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            group.state = GroupState.DEAD

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def __len__(self) -> int:
        return len(self._groups)
