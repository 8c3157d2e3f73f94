"""Classic and consumer groups: their states, their members, and the timestamps that offset expiration reads.

Theory of operation. A group that only commits ("simple") has no members and is always Empty; its first commit creates
it. A group with members goes through Kafka's states::

    Empty <-> PreparingRebalance -> CompletingRebalance -> Stable,  any of them -> Dead

A Dead group is no longer in the registry: the next commit or JoinGroup with its id creates a new group (EX-36).

This module holds the data of a classic group. `membership` has the transitions, `registry` the groups by id.
`consumer_groups` has a subclass for the groups of KIP-848.
"""

from __future__ import annotations

import enum
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.messages.k08_offset_commit import OffsetCommitRequest
    from kproto.messages.k28_txn_offset_commit import TxnOffsetCommitRequest
    from kproto_server.clock import Timer
    from kproto_server.cluster.topics import Topic
    from kproto_server.coordinator.membership.phases import Phase
    from kproto_server.coordinator.membership.responses import JoinResult, PendingResponse, SyncResult
    from kproto_server.coordinator.version_behavior import OffsetsLogBehavior

NO_GENERATION = -1

Kind = Literal["classic", "consumer", "share", "streams"]
"""The protocol of the group's members: JoinGroup and SyncGroup, ConsumerGroupHeartbeat (KIP-848), ShareGroupHeartbeat
(KIP-932), or StreamsGroupHeartbeat (KIP-1071)."""

KINDS_WITH_MEMBER_EPOCHS = frozenset({"consumer", "streams"})
"""The kinds of groups whose members commit offsets with their epochs."""

KINDS_WITH_CLASSIC_MEMBERS = frozenset({"classic", "consumer"})
"""The kinds of groups that JoinGroup can join; a consumer group during a migration (GP-57)."""

Protocols = tuple[tuple[str, bytes], ...]
"""Protocol names with the member's metadata for each; a consumer's are its assignors and its subscription."""


class GroupState(enum.Enum):
    """A state, with Kafka's name as its value."""

    if not TYPE_CHECKING:  # for pyright, all that has a state would be of unknown type
        __hash__ = object.__hash__  # an Enum's own is a Python function, and each member's request looks up a table

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    NOT_READY = "NotReady"
    """Of a streams group whose topology cannot run with the topics that there are."""
    ASSIGNING = "Assigning"
    """Of a group whose target assignment is older than its members."""
    RECONCILING = "Reconciling"
    """Of a group with members that do not have their target assignment yet."""
    STABLE = "Stable"
    DEAD = "Dead"


STATES_WITH_HEARTBEAT_BY_COMMIT = (GroupState.STABLE, GroupState.PREPARING_REBALANCE)
"""The states in which a commit extends the member's session."""


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Member:
    """One member of a group."""

    member_id: str
    _: KW_ONLY
    group_instance_id: str | None = None
    """Set for a static member (KIP-345)."""
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    protocols: Protocols = ()
    """Supported protocols, most preferred first."""
    metadata: bytes = b""
    """The member's metadata for the protocol that the group has selected."""
    assignment: bytes = b""
    epoch: int = NO_GENERATION
    """The epoch of a consumer group's member; a classic group has one generation for all members."""
    speaks_classic: bool = True
    """Whether the member of a consumer group still uses the classic protocol (GP-57)."""
    session_deadline_ms: int = 0
    """When the member's session expires."""
    is_new: bool = False
    """Whether its first JoinGroup is pending: the member can't send heartbeats yet (GP-16)."""
    pending_join: PendingResponse[JoinResult] | None = None
    """Its JoinGroup, until all members have joined."""
    pending_sync: PendingResponse[SyncResult] | None = None
    """Its SyncGroup, until the leader has sent the assignments."""

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """Return the member's metadata for a protocol; empty if the member does not support it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Group:
    """One group."""

    group_id: str
    state_timestamp_ms: int | None
    """When the group entered its state (EX-11); None if the log does not have the time (EX-16)."""
    kind: Kind = "classic"
    _touched: dict[str, None] | None = None
    """`GroupRegistry.touched` of the group's registry; None: the group is in no registry."""
    state: GroupState = GroupState.EMPTY
    protocol_type: str | None = None
    """Set by the first member; None: a simple group (EX-14)."""
    protocol_name: str | None = None
    generation: int = 0
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    """Members by id, in the order in which they joined."""
    static_members: dict[str, str] = field(default_factory=dict)
    """Member ids by group instance id."""
    _subscribed_topics: frozenset[str] | None = None
    next_check_number: int = 0
    """The number of the expiration run that checks the group next, unless the group is touched before."""

    # State of `membership` while members join and sync. It is not written to the log.
    pending_members: dict[str, int] = field(default_factory=dict)
    """Member ids that no JoinGroup has used yet, with their deadlines (GP-14)."""
    pending_sync_members: set[str] = field(default_factory=set)
    """Ids of members of this generation that have not sent SyncGroup."""
    protocol_counts: dict[str, int] = field(default_factory=dict)
    """The number of members that support each protocol."""
    pending_join_count: int = 0
    """The number of members whose JoinGroup is pending."""
    new_member_added: bool = False
    """Whether a member has joined during the initial rebalance delay (GP-20)."""
    phase: Phase | None = None
    """The delayed operation of the group as a whole, with its deadline."""
    phase_timer: Timer | None = None
    """The timer of this phase, once it is scheduled."""
    next_member_check_ms: int | None = None
    """When the sessions are checked: no later than the first deadline of a member or of a pending member id."""
    session_timer: Timer | None = None
    write_error: int = 0
    """The error of the last write of the group as an Empty one."""

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        """Enter a state, or the same state again: the retention time of the offsets starts over (EX-11)."""
        self.state = state
        self.state_timestamp_ms = now_ms
        self._touch()

    def note_commit(self, member_id: str, now_ms: int) -> None:
        """Extend the session of a member whose commit was accepted, as its heartbeat would (OC-25)."""
        member = self.members.get(member_id)
        if member is not None and not member.is_new and self.state in STATES_WITH_HEARTBEAT_BY_COMMIT:
            member.session_deadline_ms = now_ms + member.session_timeout_ms

    def had_partitions(
        self, request: OffsetCommitRequest | TxnOffsetCommitRequest, topics: Mapping[str, Topic]
    ) -> bool:
        """Return whether a member of a consumer group has had the partitions of a commit since the commit's epoch.

        ``topics``: those of the cluster, by name.
        """
        return False

    def enter_phase(self, phase: Phase | None) -> None:
        """Replace the delayed operation of the group, and cancel its timer."""
        self.phase = phase
        if self.phase_timer is not None:
            self.phase_timer.cancel()
            self.phase_timer = None

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics that any member subscribes to; None: unknown (EX-22)."""
        return self._subscribed_topics

    @subscribed_topics.setter
    def subscribed_topics(self, topics: frozenset[str] | None) -> None:
        self._subscribed_topics = topics
        self._touch()

    def _touch(self) -> None:
        """Have the next expiration run check the group, as other offsets may expire now."""
        if self._touched is not None:
            self._touched[self.group_id] = None

    def add_member(self, member: Member) -> None:
        """Add a member; the first member leads."""
        self.members[member.member_id] = member
        self._add_protocols(member)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove_member(self, member_id: str) -> Member | None:
        """Remove a member and return it; if it led, the member that joined first of the others leads (GP-24)."""
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count_protocols(member, -1)
        self._drop_instance(member.group_instance_id, member_id)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def _drop_instance(self, instance_id: str | None, member_id: str) -> None:
        """Have an instance id free again, unless another member has it by now; a log may have two of one instance."""
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        """Replace the supported protocols of a member."""
        if protocols == member.protocols:
            return
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._add_protocols(member)

    def _add_protocols(self, member: Member) -> None:
        for _, metadata in member.protocols:
            hash(metadata)  # kept by the bytes: hashing those of all members at once, to find equal ones, takes long
        self._count_protocols(member, 1)

    def _count_protocols(self, member: Member, number: int) -> None:
        counts = self.protocol_counts
        for name in {name for name, _ in member.protocols}:
            counts[name] = counts.get(name, 0) + number
            if not counts[name]:
                del counts[name]

    def record_keys(self, behavior: OffsetsLogBehavior) -> list[bytes]:
        """Return the keys of the group's records in the log."""
        from kproto_server.coordinator.offsets_log.deletions import group_key

        return [group_key(self.group_id)]

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers, and not for instance Connect workers."""
        return self.kind == "consumer" or self.protocol_type == "consumer"

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads a topic; members whose subscription is unknown count for all topics (EX-22)."""
        if self._subscribed_topics is None:
            return bool(self.members)
        return topic in self._subscribed_topics
