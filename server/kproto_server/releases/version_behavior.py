"""Switches that have not moved to the code that they change yet."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from kproto_server.releases.release import Release

if TYPE_CHECKING:
    pass


class UnmovedSwitches(Release):
    """Switches of one release."""

    # ApiVersions.

    # Offsets.

    @cached_property
    def new_group_coordinator(self) -> bool:
        """Whether the group coordinator is the one that 4.0 brought (it differs in OC-14, OC-21, OC-35, EX-3)."""
        return self.at_least(4, 0)

    def unknown_group_error(self, api_version: int) -> int:
        """The error of an OffsetCommit with a generation into a group that does not exist (OC-21)."""
        return 69 if self.new_group_coordinator and api_version >= 9 else 22

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
    def stores_any_commit(self) -> bool:
        """Whether a commit v1 is stored without a look at topic, partition, generation or member: up to 0.8.2, whose
        coordinator knows no members (measured on 0.8.2.2 and 0.9.0.1)."""
        return not self.at_least(0, 9)

    @cached_property
    def no_offsets_topic_error(self) -> int:
        """The error of a commit while there is no offsets topic: 16, but 15 in 0.8.2 (OC-10 row 12; measured on 0.8.2.2
        and 0.11.0.3)."""
        return 16 if self.at_least(0, 9) else 15

    # Groups.

    @cached_property
    def offsets_make_a_group(self) -> bool:
        """Whether a group that only commits exists, Empty: from 0.10.1 on. Before, its offsets are all there is of it:
        DescribeGroups says Dead, and a generation gets 22 (measured on 0.10.0.1 and 0.10.1.1)."""
        return self.at_least(0, 10, 1)

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
    def deleting_last_offset_removes_group(self) -> bool:
        """Whether an Empty group goes at once with the last offset that OffsetDelete or the deletion of a topic takes
        from it, rather than at the next sweep: up to 3.9 (measured on 2.8.2, 3.9.2 and 4.4.0)."""
        return not self.new_group_coordinator

    # Membership.

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

    # Topics.

    # Configurations.

    # Reading.

    # Records.
