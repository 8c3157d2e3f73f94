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
    from kproto_server.clock import Timer
    from kproto_server.coordinator.membership.phases import Phase
    from kproto_server.coordinator.membership.responses import JoinResult, PendingResponse, SyncResult

NO_GENERATION = -1

Kind = Literal["classic", "consumer"]
"""The protocol that the group's members speak: JoinGroup and SyncGroup, or KIP-848's heartbeat."""

Protocols = tuple[tuple[str, bytes], ...]
"""Names of protocols with what a member says of itself for each: a consumer its assignors and its subscription."""


class GroupState(enum.Enum):
    """A state, by Kafka's name for it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


STATES_WITH_HEARTBEAT_BY_COMMIT = (GroupState.STABLE, GroupState.PREPARING_REBALANCE)


class Member:
    """One member of a group."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "epoch",
        "group_instance_id",
        "is_new",
        "member_id",
        "metadata",
        "pending_join",
        "pending_sync",
        "protocols",
        "rebalance_timeout_ms",
        "session_deadline_ms",
        "session_timeout_ms",
        "speaks_classic",
    )

    def __init__(
        self,
        member_id: str,
        *,
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = 0,
        protocols: Protocols = (),
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
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        """What the member can do, dearest first."""
        self.metadata = metadata
        """What the member said of itself for the protocol that was chosen."""
        self.assignment = assignment
        self.epoch = epoch
        """Of a member of a consumer group; a classic group has one generation for all."""
        self.speaks_classic = speaks_classic
        """Whether the member of a consumer group still speaks the classic protocol (GP-57)."""
        self.session_deadline_ms = 0
        """When the member is given up, unless it is heard of before."""
        self.is_new = False
        """Whether it waits for the answer to its first JoinGroup, and can't send heartbeats yet (GP-16)."""
        self.pending_join: PendingResponse[JoinResult] | None = None
        """Its JoinGroup that waits for the others."""
        self.pending_sync: PendingResponse[SyncResult] | None = None
        """Its SyncGroup that waits for the leader's."""

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """Return what the member says of itself for a protocol; empty if it does not know it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""


class Group:
    """One group."""

    __slots__ = (
        "_subscribed_topics",
        "_touched",
        "generation",
        "group_id",
        "kind",
        "leader_id",
        "members",
        "new_member_added",
        "next_check_number",
        "next_member_check_ms",
        "pending_join_count",
        "pending_members",
        "pending_sync_members",
        "phase",
        "phase_timer",
        "protocol_counts",
        "protocol_name",
        "protocol_type",
        "session_timer",
        "state",
        "state_timestamp_ms",
        "static_members",
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
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        """By member id, in the order in which they came."""
        self.static_members: dict[str, str] = {}
        """Member id by group instance id."""
        self._subscribed_topics: frozenset[str] | None = None
        self.next_check_number = 0
        """The sweep that looks at the group next, if nobody touches it (`Sweeps`)."""

        # What `membership` keeps while members join and sync; none of it outlives the process.
        self.pending_members: dict[str, int] = {}
        """Ids that were given out and not used yet, and when they lapse (GP-14)."""
        self.pending_sync_members: set[str] = set()
        """Members of this generation that have not asked for their assignment."""
        self.protocol_counts: dict[str, int] = {}
        """How many members know each protocol."""
        self.pending_join_count = 0
        """Members whose JoinGroup waits."""
        self.new_member_added = False
        """Whether somebody new came while the first rebalance waits for more (GP-20)."""
        self.phase: Phase | None = None
        """What the group waits for as a whole, and until when."""
        self.phase_timer: Timer | None = None
        """Of this phase, once it is set."""
        self.next_member_check_ms: int | None = None
        """When somebody may have been silent too long: no later than the first deadline of a member or a pending id."""
        self.session_timer: Timer | None = None

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        """Enter a state, also the one it is in: the clock of expiry starts anew (EX-11)."""
        self.state = state
        self.state_timestamp_ms = now_ms
        self._touch()

    def note_commit(self, member_id: str, now_ms: int) -> None:
        """A member's commit was accepted: that is as good as a heartbeat (OC-25)."""
        member = self.members.get(member_id)
        if member is not None and not member.is_new and self.state in STATES_WITH_HEARTBEAT_BY_COMMIT:
            member.session_deadline_ms = now_ms + member.session_timeout_ms

    def enter_phase(self, phase: Phase | None) -> None:
        """Wait for something else, or for nothing."""
        self.phase = phase
        if self.phase_timer is not None:
            self.phase_timer.cancel()
            self.phase_timer = None

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
        """Take a member in; the first one leads."""
        self.members[member.member_id] = member
        self._count(member, 1)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove_member(self, member_id: str) -> Member | None:
        """Take a member out; if it led, the one that came first of the others leads (GP-24)."""
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count(member, -1)
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        """Note what a member of the group says anew."""
        if protocols == member.protocols:
            return
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def _count(self, member: Member, number: int) -> None:
        counts = self.protocol_counts
        for name in {name for name, _ in member.protocols}:
            counts[name] = counts.get(name, 0) + number
            if not counts[name]:
                del counts[name]

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
