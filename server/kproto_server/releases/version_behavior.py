"""Where releases of Kafka differ: one named switch for each question that a handler has (D3).

Every switch names the rule or the measurement it rests on: "measured on 2.2.2 and 2.3.1" means that running brokers on
both sides of the change were asked. Where only one side is named, the switch turns at the first release known to be so.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kproto.codes import ErrorCode
    from kproto_server.partition_log.precheck import Glance

__all__ = ["Mode", "VersionBehavior"]

Mode = Literal["zookeeper", "kraft"]
"""Where a broker keeps its cluster's metadata. From 3.3 to 3.9 there were both, before ZooKeeper, since KRaft."""


class VersionBehavior:
    """The switches of one release. Each is worked out at its first use and then a plain attribute."""

    def __init__(self, release: tuple[int, ...], mode: Mode, *, is_latest: bool) -> None:
        self.release = release
        """The release line in numbers; the newest release's for "latest"."""
        self.mode = mode
        self.is_latest = is_latest
        """Whether this is all releases at once."""

    def at_least(self, *release: int) -> bool:
        """Whether this is that release or a later one: ``at_least(2, 1)``."""
        return self.release >= release

    @property
    def is_kraft(self) -> bool:
        return self.mode == "kraft"

    # The wire as such.

    @cached_property
    def has_api_versions(self) -> bool:
        """Whether ApiVersions exists: from 0.10.0 on. Before, the request closes the connection (BA-6)."""
        return self.at_least(0, 10)

    @cached_property
    def checks_versions(self) -> bool:
        """Whether a version beyond the newest closes the connection. 0.8 reads it with the newest layout that it
        knows, but for OffsetCommit (fixtures/PROVENANCE.md)."""
        return self.at_least(0, 9)

    # Produce.

    @cached_property
    def invalid_records_error(self) -> ErrorCode:
        """The error of records that are not exactly one good batch: INVALID_RECORD from 2.4 on, CORRUPT_MESSAGE before
        (BA-62; measured on 2.1.1 and 2.8.2)."""
        from kproto.codes import ErrorCode

        return ErrorCode.INVALID_RECORD if self.at_least(2, 4) else ErrorCode.CORRUPT_MESSAGE

    def closes_on(self, seen: Glance, api_version: int) -> bool:
        """Whether a Produce request with such records closes the connection, rather than that they are refused: up to
        2.7 where no batch can be read, but before 2.1 not if it is a message set; before 2.1 also where something
        follows (measured on 2.0.1 and 2.1.1, and on 2.7.2 and 2.8.2)."""
        from kproto_server.partition_log.precheck import BATCHES_SINCE, Glance

        if seen in (Glance.SEVERAL, Glance.TRAILED):
            return not self.at_least(2, 1)
        is_nothing = seen in (Glance.NOTHING, Glance.UNREADABLE)
        return is_nothing and not self.at_least(2, 8) and (self.at_least(2, 1) or api_version >= BATCHES_SINCE)

    @cached_property
    def unreadable_records_spoil_all(self) -> bool:
        """Whether records that can't be a batch have a whole Produce request refused (measured on 2.7.2 and 2.8.2)."""
        return self.at_least(2, 8)

    def sequence_error(self, error: ErrorCode) -> ErrorCode:
        """The error of an idempotent producer's sequence: a producer that is not known came with 1.0 (measured on
        0.11.0.3 and 1.0.2)."""
        from kproto.codes import ErrorCode

        is_unknown = error is ErrorCode.UNKNOWN_PRODUCER_ID
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if is_unknown and not self.at_least(1, 0) else error

    @cached_property
    def epochs_begin_with_records(self) -> bool:
        """Whether the epoch of a partition that never had a record is not known (measured on 1.1.1 and 2.0.1)."""
        return not self.at_least(2, 0)

    @cached_property
    def checks_acks_before_partitions(self) -> bool:
        """Whether acks that mean nothing are told before a partition that does not exist (measured on 1.1.1 and
        2.0.1)."""
        return not self.at_least(2, 0)

    @cached_property
    def refuses_transactions_without_id(self) -> bool:
        """Whether records of a transaction in a request without transactional id are refused (measured on 2.0.1 and
        2.1.1)."""
        return self.at_least(2, 1)

    @cached_property
    def knows_zstd(self) -> bool:
        """Whether records may be compressed by zstd at all; a codec that is not known is an error of its own (KIP-110;
        measured on 2.0.1 and 2.1.1)."""
        return self.at_least(2, 1)

    @cached_property
    def checks_message_sets(self) -> bool:
        """Whether message sets of two magics are refused, and several of which one is compressed (measured on 2.3.1 and
        2.4.1)."""
        return self.at_least(2, 4)

    @cached_property
    def words_refused_records_anew(self) -> bool:
        """Whether the first three refused records are told in a text, too (measured on 3.1.2 and 3.2.3)."""
        return self.at_least(3, 2)

    @cached_property
    def missing_key_ends_with_a_stop(self) -> bool:
        """Whether the text for a record without key in a compacted topic does (measured on 3.4.1 and 3.5.2)."""
        return not self.at_least(3, 5)

    @cached_property
    def names_first_refused_record(self) -> bool:
        """Whether only the first refused record is named, and its fault is the text of all (measured on 2.4.1 and
        2.5.1)."""
        return not self.at_least(2, 5)

    @cached_property
    def names_refused_records(self) -> bool:
        """Whether an answer can name the records that it refuses: KIP-467, from 2.4 on."""
        return self.at_least(2, 4)

    @cached_property
    def refuses_sequences_of_unknown_producers(self) -> bool:
        """Whether an idempotent producer that is not known must begin with sequence 0 (BA-65)."""
        return not self.at_least(2, 5)

    def words_resource(self, kind: str, name: str) -> str:
        """What texts call a topic or broker whose configs are refused (measured on 1.1.1 and 2.0.1)."""
        if self.at_least(2, 0):
            return f"ConfigResource(type={kind}, name='{name}')"
        return f"Resource(type={kind}, name='{name}'}}"

    @cached_property
    def words_missing_topics_by_name(self) -> bool:
        """Whether configs of a topic with a bad name are refused for that name, not because there is no such topic: all
        but ZooKeeper releases from 2.7 on (measured on 2.6.3 and 2.7.2, and on 2.8.2 and 3.9.2)."""
        return self.is_kraft or not self.at_least(2, 7)

    @cached_property
    def missing_topic_to_alter(self) -> tuple[int, str | None]:
        """Error and text for a topic that is to be altered and does not exist (measured on 2.5.1 and 2.6.3, and on
        2.6.3 and 2.7.2)."""
        if self.at_least(2, 7):
            return 3, "The topic '{}' does not exist."
        return -1, None if self.at_least(2, 6) else 'Topic "{}" does not exist.'

    @cached_property
    def remembers_unknown_types(self) -> bool:
        """Whether an answer to AlterConfigs repeats a resource type that is not known, rather than 0 (measured on 2.5.1
        and 2.6.3)."""
        return self.at_least(2, 6)

    @cached_property
    def refuses_to_set_null(self) -> bool:
        """Whether IncrementalAlterConfigs says what is wrong with a change without value or of an unknown kind
        (measured on 2.5.1 and 2.6.3)."""
        return self.at_least(2, 6)

    @cached_property
    def looks_through_changes(self) -> bool:
        """Whether changes of configs are looked through in one way, in whichever mode the broker is (measured on 3.0.2
        and 3.2.3)."""
        return self.is_kraft or self.at_least(3, 2)

    @cached_property
    def words_missing_partitions(self) -> bool:
        """Whether DescribeProducers has a text for a topic that does not exist (measured on 2.8.2 and 3.0.2, and on
        3.2.3 and 3.3.2)."""
        return self.is_kraft or (self.at_least(3, 0) and not self.at_least(3, 3))

    @cached_property
    def list_offsets_tells_epochs(self) -> bool:
        """Whether ListOffsets tells the leader epoch of what it found, also for the ends of an empty log: not in 2.1,
        which has the field (BA-82; measured on 2.1.1 and 2.2.2)."""
        return self.at_least(2, 2)

    @cached_property
    def tells_stable_offset_to_all(self) -> bool:
        """Whether Fetch tells the last stable offset to those too who read uncommitted records; else it is -1 for them
        (measured on 2.0.1 and 2.1.1)."""
        return self.at_least(2, 1)

    @cached_property
    def records_of_unknown_compression(self) -> bytes | None:
        """What stands for records that a version of Fetch can't have, beside the error (measured on 2.8.2 and
        3.0.2)."""
        return None if self.at_least(3, 0) else b""

    @cached_property
    def fetch_sessions_check_epochs(self) -> bool:
        """Whether a fetch session heeds the leader epoch that its consumer knows; its first fetch always does (measured
        on 2.4.1 and 2.5.1)."""
        return self.at_least(2, 5)

    def checks_offset_before_policy(self, offset: int) -> bool:
        """Whether DeleteRecords refuses an offset that is out of range before a topic that is not to be deleted from:
        any up to 1.0, negative ones up to 2.0 (measured on 1.0.2 and 1.1.1, and on 2.0.1 and 2.1.1)."""
        return not self.at_least(2, 1) if offset < 0 else not self.at_least(1, 1)

    # ApiVersions.

    @cached_property
    def api_versions_downgrade_lists_itself(self) -> bool:
        """Whether the answer to an ApiVersions version that is too new names the versions of ApiVersions that would
        do: from 2.4 on (KIP-511); before, the list is empty (BA-21)."""
        return self.at_least(2, 4)

    # Offsets.

    @cached_property
    def new_group_coordinator(self) -> bool:
        """Whether the group coordinator is the one that 4.0 brought (it differs in OC-14, OC-21, OC-35, EX-3)."""
        return self.at_least(4, 0)

    @cached_property
    def merges_duplicate_partitions(self) -> bool:
        """Whether a partition named twice is answered once, and the last offset of a commit wins: up to 3.9 (OC-14,
        OF-17). There the answers stand in the order of a hash map; since, those that were refused before the
        coordinator was asked come first, the others in the order of the request."""
        return not self.new_group_coordinator

    @cached_property
    def merges_unknown_partitions(self) -> bool:
        """Whether that is so for partitions that do not exist as well (measured on 3.4.1 and 3.5.2)."""
        return not self.at_least(3, 5)

    def unknown_group_error(self, api_version: int) -> int:
        """The error of an OffsetCommit with a generation into a group that does not exist (OC-21)."""
        return 69 if self.new_group_coordinator and api_version >= 9 else 22

    @cached_property
    def offset_commit_v0_store(self) -> Literal["zookeeper", "unsupported", "absent"]:
        """What OffsetCommit and OffsetFetch v0 do: a store of their own; error 35 per partition in a KRaft broker up to
        3.9; or no such version (OC-20, OF-11). "latest" serves v0 with a store of its own, as any version."""
        if self.is_latest or not self.is_kraft:
            return "zookeeper"
        return "absent" if self.at_least(4, 0) else "unsupported"

    @cached_property
    def offsets_carry_expiry(self) -> bool:
        """Whether each offset has a deadline from the commit on, whatever becomes of its group: before KIP-211, that is
        up to 2.0 (OC-40, EX-40)."""
        return not self.at_least(2, 1)

    @cached_property
    def unsubscribed_offsets_expire(self) -> Literal["never", "unless empty", "stable"]:
        """In which states consumers lose offsets of topics that they don't subscribe to: none before 2.4, all with
        members up to 2.7, since then Stable (EX-21)."""
        if not self.at_least(2, 4):
            return "never"
        return "stable" if self.at_least(2, 8) else "unless empty"

    @cached_property
    def forgets_since_when_groups_are_empty(self) -> bool:
        """Whether after a restart nobody knows since when a group is Empty: 2.3 to 2.5 write that time in version 3 of
        the group's value, and look for it in version 2 only (EX-16; measured on 2.3.1, 2.4.1 and 2.5.1, not 2.6.3)."""
        return self.at_least(2, 3) and not self.at_least(2, 6)

    @cached_property
    def commit_timestamp_is_the_clients(self) -> bool:
        """Whether an explicit timestamp of OffsetCommit v1 is the time of the commit, from 2.1 on; from 0.9 to 2.0 it
        only moves the deadline, in 0.8.2 it is all that is stored (OC-40)."""
        return self.at_least(2, 1) or not self.at_least(0, 9)

    @cached_property
    def checks_partitions_of_commit(self) -> bool:
        """Whether a commit to a partition that its topic does not have is refused: from 2.0 on. Before, the topic is
        all that is looked for (OC-10 row 7; measured on 1.1.1 and 2.0.1)."""
        return self.at_least(2, 0)

    @cached_property
    def stores_any_commit(self) -> bool:
        """Whether a commit v1 is stored without a look at topic, partition, generation or member: up to 0.8.2, whose
        coordinator knows no members (measured on 0.8.2.2 and 0.9.0.1)."""
        return not self.at_least(0, 9)

    @cached_property
    def fetch_of_unknown_topic_error(self) -> int:
        """The error of OffsetFetch v1 and later for a topic that does not exist: none (OF-10), but 3 in 0.8.2 (measured
        on 0.8.2.2 and 0.9.0.1)."""
        return 0 if self.at_least(0, 9) else 3

    @cached_property
    def empty_fetch_means_all(self) -> bool:
        """Whether OffsetFetch v1 without topics is answered with all that the group has: from 0.9 to 0.10.1. After that
        v2 with null topics says so (OF-13; measured on 0.8.2.2, 0.9.0.1, 0.10.1.1 and 0.10.2.2)."""
        return self.at_least(0, 9) and not self.at_least(0, 10, 2)

    @cached_property
    def no_offsets_topic_error(self) -> int:
        """The error of a commit while there is no offsets topic: 16, but 15 in 0.8.2 (OC-10 row 12; measured on 0.8.2.2
        and 0.11.0.3)."""
        return 16 if self.at_least(0, 9) else 15

    @cached_property
    def answers_unknown_topics_without_partitions(self) -> bool:
        """Whether OffsetCommit and OffsetDelete answer an unknown topic of which no partition was named, without any:
        from 3.5 on. A known one is left out in all releases (measured on 2.8.2, 3.2.3, 3.9.2 and 4.4.0; KafkaApis of
        3.4, 3.5)."""
        return self.at_least(3, 5)

    @cached_property
    def repeats_topics_of_offset_delete(self) -> bool:
        """Whether OffsetDelete answers a topic once for each of its partitions, all of them each time: in 2.4 and 2.5
        (measured on 2.4.1, 2.5.1 and 2.6.3)."""
        return not self.at_least(2, 6)

    # Groups.

    @cached_property
    def offsets_make_a_group(self) -> bool:
        """Whether a group that only commits exists, Empty: from 0.10.1 on. Before, its offsets are all there is of it:
        DescribeGroups says Dead, and a generation gets 22 (measured on 0.10.0.1 and 0.10.1.1)."""
        return self.at_least(0, 10, 1)

    @cached_property
    def merges_repeated_groups(self) -> bool:
        """Whether DescribeGroups answers a group named twice once: up to 2.2 (measured on 2.2.2 and 2.3.1)."""
        return not self.at_least(2, 3)

    @cached_property
    def unasked_authorized_operations(self) -> int:
        """What stands for authorized operations that were not asked for, in DescribeGroups and Metadata: 0 in 2.3 and
        2.4, which have them first, then the least int32 (BA-36; measured on 2.4.1 and 2.5.1)."""
        return -(2**31) if self.at_least(2, 5) else 0

    @cached_property
    def dead_group_error(self) -> int:
        """The error of a commit into a group that is just being removed: look for the coordinator again from 2.3 on,
        before that the member is unknown (OC-22)."""
        return 15 if self.at_least(2, 3) else 25

    @cached_property
    def rebalance_hides_membership(self) -> bool:
        """Whether everyone who commits while a group completes a rebalance is told to rejoin, whoever it is: up to 2.3
        (OC-22)."""
        return not self.at_least(2, 4)

    @cached_property
    def checks_instance_of_commit(self) -> bool:
        """Whether a commit with a group instance id that the group does not know is refused, from 3.0 on. Before, only
        one that another member has is (OC-23; measured on 2.8.2 and 3.9.2)."""
        return self.at_least(3, 0)

    @cached_property
    def simple_commit_may_name_a_member(self) -> bool:
        """Whether a commit without a generation into an Empty group passes whatever member it names; from 3.0 to 3.2 a
        named member has to exist (KAFKA-14201; GroupCoordinator.validateOffsetCommit of 3.2.3 and 3.3.0)."""
        return not self.at_least(3, 0) or self.at_least(3, 3)

    @cached_property
    def completing_rebalance_name(self) -> str:
        """What the state between join and sync is called: renamed in 1.1 (measured on 0.11.0.3 and 1.1.1)."""
        return "CompletingRebalance" if self.at_least(1, 1) else "AwaitingSync"

    @cached_property
    def group_authorized_operations(self) -> int:
        """Everything that may be done with a group, as bits: read, delete, describe, and from 4.0 on describe and alter
        its configs (measured on 3.9.2 and 4.4.0)."""
        return 0b1101_0100_1000 if self.at_least(4, 0) else 0b0001_0100_1000

    @cached_property
    def describes_assignments_of_old(self) -> bool:
        """Whether DescribeGroups tells members' last assignments while they rebalance: from 4.0 on (GP-40; measured on
        2.1.1, 3.9.2 and 4.4.0)."""
        return self.new_group_coordinator

    @cached_property
    def describes_assignment_as_metadata(self) -> bool:
        """Whether DescribeGroups tells a member's assignment in the place of its metadata too: a mistake of 2.3 (GP-40;
        measured on 2.2.2, 2.3.1 and 2.4.1)."""
        return self.release == (2, 3)

    @cached_property
    def group_filters_ignore_case(self) -> bool:
        """Whether the filters of ListGroups take a name in any letters: from 3.8 on (GP-42; measured on 3.7.2 and
        3.8.1)."""
        return self.at_least(3, 8)

    @cached_property
    def deletes_no_group_without_id(self) -> bool:
        """Whether DeleteGroups refuses the empty id: in 1.1, which has it first (measured on 1.1.1 and 2.0.1)."""
        return not self.at_least(2, 0)

    @cached_property
    def deleting_last_offset_removes_group(self) -> bool:
        """Whether an Empty group goes at once with the last offset that OffsetDelete or the deletion of a topic takes
        from it, rather than at the next sweep: up to 3.9 (measured on 2.8.2, 3.9.2 and 4.4.0)."""
        return not self.new_group_coordinator

    # Membership.

    @cached_property
    def refused_join_generation(self) -> int:
        """The generation in the answer to a JoinGroup that is refused: 0 up to 2.1, then -1 (GP-3)."""
        return -1 if self.at_least(2, 2) else 0

    @cached_property
    def members_name_their_group(self) -> bool:
        """Whether Heartbeat, LeaveGroup and SyncGroup refuse a group without a name, from 2.0 on; before, it has no
        members (measured on 1.1.1 and 2.0.1)."""
        return self.at_least(2, 0)

    @cached_property
    def first_rebalance_waits(self) -> bool:
        """Whether the first rebalance of an Empty group waits for more members, from 0.11 on; before, its first member
        is a generation at once (GP-20, KIP-134)."""
        return self.at_least(0, 11)

    @cached_property
    def limits_group_size(self) -> bool:
        """Whether group.max.size holds: from 2.2 on (KIP-389)."""
        return self.at_least(2, 2)

    @cached_property
    def sheds_members_late(self) -> bool:
        """Whether a group that is full refuses only who has no member id, and who comes last while it is too large: up
        to 2.5. Since then the first ones of a rebalance stay, whoever they are (GP-15; GroupCoordinator of 2.5.1,
        2.6.3)."""
        return not self.at_least(2, 6)

    @cached_property
    def checks_first_protocols(self) -> bool:
        """Whether the first member of a group has to name a protocol type: from 1.0 on (GP-13; measured on 0.11.0.3 and
        1.1.1; GroupCoordinator of 1.0.2)."""
        return self.at_least(1, 0)

    @cached_property
    def rebalance_hides_heartbeats(self) -> bool:
        """Whether every heartbeat is told to join again while the group is not Stable, whoever sends it, and none of
        these counts: up to 0.10.0 (GP-35; measured on 0.10.0.1 and 0.10.1.1)."""
        return not self.at_least(0, 10, 1)

    @cached_property
    def commits_are_heartbeats(self) -> bool:
        """Whether a member that commits need not send heartbeats: from 0.10.0 on (OC-25; measured on 0.9.0.1 and
        0.10.0.1)."""
        return self.at_least(0, 10)

    @cached_property
    def completing_rebalance_hides_generation(self) -> bool:
        """Whether a member's heartbeat before its SyncGroup is told to join again whatever generation it names: up to
        2.2 (GP-35; GroupCoordinator of 2.2.2, 2.3.1)."""
        return not self.at_least(2, 3)

    @cached_property
    def refuses_heartbeats_before_sync(self) -> bool:
        """Whether a heartbeat between JoinGroup and SyncGroup is told to join again, rather than counted: up to 2.5
        (GP-35; GroupCoordinator of 2.5.1, 2.6.3)."""
        return not self.at_least(2, 6)

    @cached_property
    def waits_for_syncs_only_so_long(self) -> bool:
        """Whether members that don't send SyncGroup are out after the rebalance timeout: from 2.8 on (GP-25)."""
        return self.at_least(2, 8)

    @cached_property
    def stores_returned_static_members(self) -> bool:
        """Whether a static member that comes back is written, and makes a rebalance if another protocol would be chosen
        with it: from 2.6 on (GP-34; GroupCoordinator of 2.5.1, 2.6.3)."""
        return self.at_least(2, 6)

    @cached_property
    def returned_static_member_stops_sync(self) -> bool:
        """Whether one that comes back while the leader assigns makes a rebalance: from 2.5 on; before, it has the old
        id's place, and no assignment (GP-34; GroupCoordinator of 2.4.1, 2.5.1)."""
        return self.at_least(2, 5)

    # FindCoordinator.

    def find_coordinator_success_message(self, api_version: int) -> str | None:
        """The error_message of a coordinator that was found; v0 has no such field (BA-41; measured on 2.2.2 and
        2.3.1)."""
        if api_version >= 4:
            return ""
        return "NONE" if self.at_least(2, 3) else None

    def find_coordinator_error_message(self, error: ErrorCode) -> str | None:
        """The error_message of v1 to v3 where no coordinator was found (BA-42; measured on 2.2.2 and 2.3.1)."""
        return error.message if self.at_least(2, 3) else None

    @cached_property
    def answers_unknown_coordinator_type(self) -> bool:
        """Whether a type that there is not is answered: from 2.3 on. Before, it closes the connection (BA-43; measured
        on 2.2.2 and 2.3.1)."""
        return self.at_least(2, 3)

    @cached_property
    def unknown_coordinator_type_error(self) -> int:
        """The error of that answer: -1 up to 2.7, then 42 (measured on 2.3.1 to 2.7.2 and 2.8.2)."""
        return 42 if self.at_least(2, 8) else -1

    # Topics.

    @cached_property
    def isr_shrink_is_an_epoch(self) -> bool:
        """Whether the leader epoch of a partition grows also when a follower stops: ZooKeeper, and KRaft before 3.6
        (measured on 2.8.2 and 4.4.0; PartitionChangeBuilder of 3.6)."""
        return not self.is_kraft or not self.at_least(3, 6)

    @cached_property
    def has_eligible_leader_replicas(self) -> bool:
        """Whether the last replica in sync of a partition without a leader is told as eligible rather than in sync
        (KIP-966): where eligible.leader.replicas.version is finalized, from 4.1 on (measured on 4.0.2, 4.1.2 and
        4.4.0)."""
        return self.at_least(4, 1)

    @cached_property
    def words_topic_names_anew(self) -> bool:
        """Whether the refusal of a topic's name is worded as "Topic name is invalid: ..." (measured on 3.2.3 and
        3.3.2)."""
        return self.at_least(3, 3)

    @cached_property
    def can_cordon(self) -> bool:
        """Whether log directories can be cordoned, which the text on too few brokers mentions (measured on 4.2.2 and
        4.3.1)."""
        return self.at_least(4, 3)

    @cached_property
    def checks_topic_name_first(self) -> bool:
        """Whether Metadata answers 17 to a name that cannot be even where no topic may be created, rather than 3: from
        2.8 on, in both modes (BA-32; measured on 2.7.2 and 2.8.2)."""
        return self.at_least(2, 8)

    @cached_property
    def metadata_makes_internal_topics_unasked(self) -> bool:
        """Whether Metadata that names an internal topic makes it, whatever settings and request allow: up to 2.7. From
        2.8 on that goes by the rules of other topics, and the answer is 3 where none may be made. Too few brokers for
        it are error 38 with ZooKeeper, 3 with KRaft (BA-50; measured on 2.7.2, 2.8.2, 3.3.2, 3.9.2 and 4.4.0)."""
        return not self.at_least(2, 8)

    @cached_property
    def creates_topics_with_defaults(self) -> bool:
        """Whether CreateTopics takes -1 partitions or replicas for the broker's default, in any version: from 2.4 on
        (BA-90; measured on 2.3.1 and 2.4.1)."""
        return self.at_least(2, 4)

    @cached_property
    def bad_config_error(self) -> int:
        """The error of CreateTopics for a config value that cannot be: 40, but -1 up to 2.0 (measured on 2.0.1 and
        2.1.1)."""
        return 40 if self.at_least(2, 1) else -1

    @cached_property
    def auto_create_answers_leader_not_available(self) -> bool:
        """Whether Metadata answers 5 for a topic that it has just begun to create, rather than 3 (BA-32)."""
        return not self.is_kraft

    @cached_property
    def enforces_offsets_replication_factor(self) -> bool:
        """Whether the offsets topic is never made with fewer replicas than configured: from 0.11 on (KIP-115). Before,
        it gets as many as there are brokers (BA-50)."""
        return self.at_least(0, 11)

    @cached_property
    def null_config_error(self) -> int:
        """The error of CreateTopics for a config without a value: -1, 42 from 2.6 on, 40 from 3.3 on (measured on
        2.5.1, 2.6.3, 3.2.3 and 3.3.2)."""
        if self.at_least(3, 3):
            return 40
        return 42 if self.at_least(2, 6) else -1

    @cached_property
    def refuses_disabled_deletion(self) -> bool:
        """Whether DeleteTopics refuses every topic where deletion is off; before 2.1 those that exist time out, 7
        (BA-91; measured on 2.0.1 and 2.1.1)."""
        return self.at_least(2, 1)

    @cached_property
    def answers_each_repeated_topic(self) -> bool:
        """Whether CreateTopics and DeleteTopics answer a topic as often as it stands in the request: ZooKeeper brokers
        from 2.3 on; others once (measured on 2.2.2, 2.3.1 and 3.9.2)."""
        return self.at_least(2, 3) and not self.is_kraft

    def repeated_topic_message(self, name: str, client_id: str) -> str:
        """Why CreateTopics refuses a topic that stands twice (measured on 2.2.2, 2.3.1 and 3.3.2)."""
        if self.is_kraft:
            return "Duplicate topic name."
        if self.at_least(2, 3):
            return "Found multiple entries for this topic."
        why = "contains multiple entries for the following topics"
        return f"Create topics request from client `{client_id}` {why}: {name}"

    @cached_property
    def repeated_growth_message(self) -> str:
        """The same of CreatePartitions (measured on 2.1.1 and 3.9.2 in both modes)."""
        return "Duplicate topic name." if self.is_kraft else "Duplicate topic in request."

    @cached_property
    def word_for_added_partitions(self) -> str:
        """What the refusal of too many of them calls them, with a space (measured on 3.9.2 and 4.4.0)."""
        return "additional " if self.at_least(4, 4) else ""

    # Configurations.

    @cached_property
    def tells_index_interval_early(self) -> bool:
        """Whether index.interval.bytes comes before a config that shares its hash (measured on 4.1.2 and 4.2.2)."""
        return self.at_least(4, 2)

    @cached_property
    def keeps_min_in_sync_for_all(self) -> bool:
        """Whether min.insync.replicas is one for all brokers, as eligible leader replicas need it (measured on
        4.4.0)."""
        return self.is_kraft and self.at_least(4, 1)

    @cached_property
    def describes_configs_of_missing_topics(self) -> bool:
        """Whether DescribeConfigs tells the defaults of a topic that does not exist, rather than error 3: before 2.0
        (BA-92; measured on 1.1.1 and 2.0.1)."""
        return not self.at_least(2, 0)

    @cached_property
    def looks_for_new_topics_first(self) -> bool:
        """Whether CreateTopics tells before anything else that the topic is there, where ZooKeeper has it (BA-50;
        measured on 2.2.2 and 2.3.1)."""
        return self.at_least(2, 3)

    @cached_property
    def checks_new_configs_first(self) -> bool:
        """Whether, after that, it judges the configs before the partitions and the name (BA-50; measured on 2.6.3 and
        2.7.2)."""
        return not self.at_least(2, 7)

    @cached_property
    def describes_configs_anew(self) -> bool:
        """Whether DescribeConfigs takes no keys for all keys, answers a resource as often as it is asked for, has an
        empty text for success, and in v0 says of nothing that it is a default: from 2.7 on. Before: no keys for none,
        once, null, and the truth (BA-92; measured on 2.6.3 and 2.7.2)."""
        return self.at_least(2, 7)

    @cached_property
    def has_broker_loggers(self) -> bool:
        """Whether DescribeConfigs knows resource type 8 (BA-92; measured on 2.1.1 and 2.4.1)."""
        return self.at_least(2, 4)

    @cached_property
    def has_client_metrics(self) -> bool:
        """Whether it knows type 16 (BA-92; measured on 3.3.2 and 3.7.2)."""
        return self.at_least(3, 7)

    @cached_property
    def has_group_configs(self) -> bool:
        """Whether it knows type 32 (BA-92; measured on 3.9.2 and 4.4.0)."""
        return self.at_least(4, 0)

    # Reading.

    @cached_property
    def answers_unknown_isolation_level(self) -> bool:
        """Whether a ListOffsets with an isolation level that there is not is answered, with error -1; before 2.8 it
        closes the connection (measured on 2.4.1 and 2.8.2)."""
        return self.at_least(2, 8)

    @cached_property
    def answers_each_repeated_position(self) -> bool:
        """Whether ListOffsets refuses a partition as often as it stands in the request, from 2.8 to 3.9; others once
        (BA-82; measured on 2.4.1, 2.8.2, 3.9.2 and 4.4.0)."""
        return self.at_least(2, 8) and not self.at_least(4, 0)

    @cached_property
    def missing_partition_lists_no_aborts(self) -> bool:
        """Whether the aborted transactions that Fetch tells of a partition that there is not are an empty list, rather
        than null (measured on 2.8.2 and 3.0.2)."""
        return self.at_least(3, 0)

    # Records.

    @cached_property
    def rejects_unknown_special_timestamps(self) -> bool:
        """Whether ListOffsets answers 35 to a negative timestamp that means nothing in the version, before it looks for
        the topic. Earlier releases take it for a time (BA-81; measured on 3.8.1 and 3.9.2)."""
        return self.at_least(3, 9)

    def unknown_topic_fetch_error(self, api_version: int) -> int:
        """The error of a Fetch by name from a topic or partition that there is not: 3, but by mistake 76 in 2.1 below
        v10 (BA-74; measured on 2.1.1 and 2.2.2)."""
        return 76 if self.release == (2, 1) and api_version < 10 else 3
