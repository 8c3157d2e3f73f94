"""What Kafka releases do differently with commits and groups, and which records they write to the offsets topic."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from kproto.codes import ErrorCode
from kproto_server.releases.release import VersionBehavior


class CommitBehavior(VersionBehavior):
    """The switches of commits and of the expiration of offsets."""

    def unknown_group_error(self, api_version: int) -> ErrorCode:
        """Return the error of an OffsetCommit with a generation to a group that does not exist (OC-21)."""
        if self.at_least(4, 0) and api_version >= 9:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION

    @cached_property
    def dead_group_error(self) -> ErrorCode:
        """The error of a commit to a group that is being removed: COORDINATOR_NOT_AVAILABLE from 2.3 on, before
        UNKNOWN_MEMBER_ID (OC-22)."""
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if self.at_least(2, 3) else ErrorCode.UNKNOWN_MEMBER_ID

    @cached_property
    def no_offsets_topic_error(self) -> ErrorCode:
        """The error of a commit while the offsets topic does not exist: NOT_COORDINATOR, but COORDINATOR_NOT_AVAILABLE
        in 0.8.2 (OC-10 row 12; measured on 0.8.2.2 and 0.11.0.3)."""
        return ErrorCode.NOT_COORDINATOR if self.at_least(0, 9) else ErrorCode.COORDINATOR_NOT_AVAILABLE

    @cached_property
    def stores_any_commit(self) -> bool:
        """Whether OffsetCommit v1 does not check topic, partition, generation or member: up to 0.8.2, whose coordinator
        has no members (measured on 0.8.2.2 and 0.9.0.1)."""
        return not self.at_least(0, 9)

    @cached_property
    def counts_commits_as_heartbeats(self) -> bool:
        """Whether a commit extends the session of its member: from 0.10.0 on (OC-25; measured on 0.9.0.1 and
        0.10.0.1)."""
        return self.at_least(0, 10)

    @cached_property
    def refuses_all_before_sync(self) -> bool:
        """Whether each commit in CompletingRebalance gets REBALANCE_IN_PROGRESS, before its member is checked: up to
        2.3 (OC-22)."""
        return not self.at_least(2, 4)

    @cached_property
    def requires_known_instance_id(self) -> bool:
        """Whether a commit with a group instance id that is unknown to the group is refused, from 3.0 on. Before, only
        an id that belongs to another member is refused (OC-23; measured on 2.8.2 and 3.9.2)."""
        return self.at_least(3, 0)

    @cached_property
    def simple_commit_may_name_member(self) -> bool:
        """Whether a commit without generation to an Empty group may name any member; from 3.0 to 3.2 the member has to
        exist (KAFKA-14201; GroupCoordinator.validateOffsetCommit of 3.2.3 and 3.3.0)."""
        return not self.at_least(3, 0) or self.at_least(3, 3)

    @cached_property
    def uses_client_timestamp(self) -> bool:
        """Whether an explicit timestamp of OffsetCommit v1 is the commit timestamp: from 2.1 on. From 0.9 to 2.0 it
        only moves the expire timestamp, in 0.8.2 it is the only timestamp that is stored (OC-40)."""
        return self.at_least(2, 1) or not self.at_least(0, 9)

    @cached_property
    def offsets_have_expire_timestamp(self) -> bool:
        """Whether each offset has an expire timestamp from its commit on, whatever state its group has: before KIP-211,
        that is up to 2.0 (OC-40, EX-40)."""
        return not self.at_least(2, 1)

    @cached_property
    def unsubscribed_offsets_expire(self) -> Literal["never", "unless empty", "stable"]:
        """In which group states the offsets of unsubscribed topics expire: in none before 2.4, in all with members up
        to 2.7, in Stable from 2.8 on (EX-21)."""
        if not self.at_least(2, 4):
            return "never"
        return "stable" if self.at_least(2, 8) else "unless empty"

    @cached_property
    def deleting_last_offset_removes_group(self) -> bool:
        """Whether OffsetDelete or the deletion of a topic removes an Empty group with its last offset at once, instead
        of the next offset expiration: up to 3.9 (measured on 2.8.2, 3.9.2 and 4.4.0)."""
        return not self.at_least(4, 0)


class GroupBehavior(VersionBehavior):
    """The switches of groups and their members."""

    @cached_property
    def is_new_coordinator(self) -> bool:
        """Whether the group coordinator is the one that 4.0 introduced (it differs in OC-14, OC-21, OC-35, EX-3)."""
        return self.at_least(4, 0)

    @cached_property
    def has_consumer_groups(self) -> bool:
        """Whether the protocol of KIP-848 is served: from 4.0 on. Brokers from 3.7 to 3.9 have its APIs, and respond
        UNSUPPORTED_VERSION by default (measured on 3.7.2 and 3.9.2)."""
        return self.at_least(4, 0)

    @cached_property
    def has_streams_groups(self) -> bool:
        """Whether the coordinator knows the records of streams groups: from 4.1 on, in which they are an early access
        that no cluster has by default."""
        return self.at_least(4, 1)

    @cached_property
    def first_group_epoch(self) -> int:
        """The epoch of a consumer or streams group before its first member joins: 1 from 4.3 on."""
        return 1 if self.at_least(4, 3) else 0

    @cached_property
    def members_may_join_again(self) -> bool:
        """Whether a member of a consumer group may join with epoch 0 while it is a member: from 4.2 on (measured on
        4.1.2 and 4.2.2). Before, it is fenced unless that was its previous epoch."""
        return self.at_least(4, 2)

    @cached_property
    def describes_revocations(self) -> bool:
        """Whether ConsumerGroupDescribe returns partitions that a member has to revoke as part of its assignment: from
        4.3 on."""
        return self.at_least(4, 3)

    @cached_property
    def assignor_raises_epoch(self) -> bool:
        """Whether a member of a consumer group that prefers another assignor raises the group epoch: from 4.4 on."""
        return self.at_least(4, 4)

    @cached_property
    def removed_regex_raises_epoch(self) -> bool:
        """Whether a member of a consumer group that gives up its regular expression raises the group epoch: from 4.1 on
        (measured on 4.0.0 and 4.1.2)."""
        return self.at_least(4, 1)

    @cached_property
    def regex_finds_visible_topics(self) -> bool:
        """Whether the regular expressions of a consumer group find the topics that a member may describe; in 4.0.0 they
        find all (measured on 4.0.0 and 4.0.1)."""
        return self.release != (4, 0, 0)

    @cached_property
    def downgrade_precedes_assignment(self) -> bool:
        """Whether no targets are computed when a joining member makes a consumer group a classic one, which rebalances
        instead: from 4.1 on (measured on 4.0.0, 4.1.2, 4.2.2 and 4.4.0)."""
        return self.at_least(4, 1)

    @cached_property
    def members_give_up_unsubscribed_topics(self) -> bool:
        """Whether a member of a consumer group gives up topics that it no longer subscribes to before there is a new
        target assignment: from 4.2 on (CurrentAssignmentBuilder of 4.1.2 and 4.2.2)."""
        return self.at_least(4, 2)

    @cached_property
    def assignments_keep_sizes(self) -> bool:
        """Whether the assignor uniform gives one partition more to the last members that may get one: from 4.1 on
        (UniformHomogeneousAssignmentBuilder of 4.0.0 and 4.1.2)."""
        return self.at_least(4, 1)

    @cached_property
    def members_keep_revoked_partitions(self) -> bool:
        """Whether a member of a consumer group may keep partitions that it has to revoke, if its new target has them:
        from 4.1 on (CurrentAssignmentBuilder of 4.0.0 and 4.1.2)."""
        return self.at_least(4, 1)

    @cached_property
    def classic_members_follow_targets(self) -> bool:
        """Whether a classic member of a consumer group joins again for a new target assignment, from 4.3 on, or for a
        new group epoch."""
        return self.at_least(4, 3)

    @cached_property
    def disabled_migration_refuses_joins(self) -> bool:
        """Whether `group.consumer.migration.policy=disabled` keeps classic members out of consumer groups: from 4.2
        on."""
        return self.at_least(4, 2)

    @cached_property
    def full_group_replaces_static_members(self) -> bool:
        """Whether a full consumer group lets a static member join in place of another: from 4.4 on."""
        return self.at_least(4, 4)

    @cached_property
    def empty_groups_are_assigned(self) -> bool:
        """Whether the target assignment of a consumer or streams group gets the group epoch when the last member
        leaves: from 4.4 on."""
        return self.at_least(4, 4)

    @cached_property
    def commits_have_assignment_epochs(self) -> bool:
        """Whether a member of a consumer group may commit with an older epoch, from which on it has had the
        partitions: from 4.3 on (OC-26)."""
        return self.at_least(4, 3)

    @cached_property
    def offsets_create_group(self) -> bool:
        """Whether a group that only commits exists, in state Empty: from 0.10.1 on. Before, DescribeGroups returns
        Dead, and a commit with a generation gets ILLEGAL_GENERATION (measured on 0.10.0.1 and 0.10.1.1)."""
        return self.at_least(0, 10, 1)

    @cached_property
    def loses_empty_since(self) -> bool:
        """Whether a restart loses the time since when a group is Empty: 2.3 to 2.5 write the time to version 3 of the
        group's value and read it from version 2 only (EX-16; measured on 2.3.1, 2.4.1 and 2.5.1, not 2.6.3)."""
        return self.at_least(2, 3) and not self.at_least(2, 6)

    @cached_property
    def completing_rebalance_name(self) -> str:
        """The name of the state between JoinGroup and SyncGroup, which 1.1 changed (measured on 0.11.0.3 and 1.1.1)."""
        return "CompletingRebalance" if self.at_least(1, 1) else "AwaitingSync"

    @cached_property
    def has_initial_rebalance_delay(self) -> bool:
        """Whether the first rebalance of an Empty group waits for more members: from 0.11 on. Before, the first member
        forms a generation at once (GP-20, KIP-134)."""
        return self.at_least(0, 11)

    @cached_property
    def limits_group_size(self) -> bool:
        """Whether `group.max.size` has an effect: from 2.2 on (KIP-389)."""
        return self.at_least(2, 2)

    @cached_property
    def full_group_keeps_known_members(self) -> bool:
        """Whether a full group refuses members without member id, and the last ones to join while it is too large: up
        to 2.5. From 2.6 on it keeps the first members of a rebalance, with or without id (GP-15; GroupCoordinator of
        2.5.1 and 2.6.3)."""
        return not self.at_least(2, 6)

    @cached_property
    def first_member_needs_protocol_type(self) -> bool:
        """Whether the first member of a group must name a protocol type: from 1.0 on (GP-13; measured on 0.11.0.3 and
        1.1.1; GroupCoordinator of 1.0.2)."""
        return self.at_least(1, 0)

    @cached_property
    def refuses_all_heartbeats_in_rebalance(self) -> bool:
        """Whether all heartbeats to a group that is not Stable get REBALANCE_IN_PROGRESS, whichever member sends them,
        and none extends a session: up to 0.10.0 (GP-35; measured on 0.10.0.1 and 0.10.1.1)."""
        return not self.at_least(0, 10, 1)

    @cached_property
    def ignores_generation_before_sync(self) -> bool:
        """Whether a member's heartbeat before its SyncGroup gets REBALANCE_IN_PROGRESS with any generation: up to 2.2
        (GP-35; GroupCoordinator of 2.2.2 and 2.3.1)."""
        return not self.at_least(2, 3)

    @cached_property
    def refuses_heartbeats_before_sync(self) -> bool:
        """Whether a heartbeat between JoinGroup and SyncGroup gets REBALANCE_IN_PROGRESS and does not extend the
        session: up to 2.5 (GP-35; GroupCoordinator of 2.5.1 and 2.6.3)."""
        return not self.at_least(2, 6)

    @cached_property
    def has_pending_sync_timeout(self) -> bool:
        """Whether members that do not send SyncGroup are removed after the rebalance timeout: from 2.8 on (GP-25)."""
        return self.at_least(2, 8)

    @cached_property
    def writes_returning_static_members(self) -> bool:
        """Whether a static member that comes back is written to the log, and starts a rebalance if another protocol
        would be selected with it: from 2.6 on (GP-34; GroupCoordinator of 2.5.1 and 2.6.3)."""
        return self.at_least(2, 6)

    @cached_property
    def returning_static_member_restarts_rebalance(self) -> bool:
        """Whether a static member that comes back while the leader assigns partitions starts another rebalance: from
        2.5 on. Before, it replaces the old member id, without an assignment (GP-34; GroupCoordinator of 2.4.1 and
        2.5.1)."""
        return self.at_least(2, 5)


class OffsetsLogBehavior(VersionBehavior):
    """The versions of the records that a release writes to ``__consumer_offsets``, and a detail of their batches.

    A broker writes the versions that the oldest broker of its cluster can read (inter.broker.protocol.version); here
    that is the release itself, as is the default.
    """

    @cached_property
    def offset_key_type(self) -> int:
        """The record type of an offset: 0 in 0.8.2, 1 since; both are read (OC-44)."""
        return 1 if self.at_least(0, 9) else 0

    @cached_property
    def offset_value_version(self) -> int:
        """The version of an offset's value without an expire timestamp of its own (OC-43; the change from 3 to 4 is
        that of GroupCoordinatorRecordHelpers in the jars of 4.0.2 and 4.1.2)."""
        if self.at_least(4, 1):
            return 4
        if self.at_least(2, 1):
            return 3
        return 1 if self.at_least(0, 9) else 0

    @cached_property
    def expiring_offset_value_version(self) -> int:
        """The version of an offset's value with an expire timestamp: the only one that has the field (OC-43)."""
        return 1 if self.at_least(0, 9) else 0

    @cached_property
    def group_value_version(self) -> int:
        """The version of a group's value (EX-50)."""
        if self.at_least(2, 3):
            return 3
        if self.at_least(2, 1):
            return 2
        return 1 if self.at_least(0, 10, 1) else 0

    @cached_property
    def writes_partition_metadata(self) -> bool:
        """Whether a consumer group has its subscribed topics in the log, and not a hash of them: up to 4.0
        (KIP-1101)."""
        return not self.at_least(4, 1)

    @cached_property
    def writes_assignment_timestamp(self) -> bool:
        """Whether the log has the time of a target assignment."""
        return self.at_least(4, 3)

    @cached_property
    def group_base_sequence(self) -> int:
        """The base sequence of batches of tombstones and groups, which has no meaning without a producer: -1, but 0 in
        the coordinator of 4.0. Batches of commits have 0 in all releases (LF-5; measured on 2.0.1, 2.1.1 and 4.4.0)."""
        return 0 if self.at_least(4, 0) else -1


class CoordinatorBehavior(CommitBehavior, GroupBehavior, OffsetsLogBehavior):
    """All switches of the group coordinator."""
