"""Whatever members do, in whatever order, a group keeps its promises.

Method: Hypothesis has members join, sync, live, leave and be silent at random, on a clock of their own. After each step
what the group holds must agree with itself; and what members were told, with what they were told before:

- a generation has one leader, one protocol and one set of members, and every answer tells of it alike;
- generations only rise;
- a member has one assignment in a generation, and it is the leader's;
- every request is answered in the end, with nobody doing anything but time passing.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kproto_server.coordinator.groups import Group, GroupState, Protocols
from kproto_server.coordinator.membership.phases import DelayedSync, InitialDelayedJoin
from kproto_server.coordinator.membership.responses import JoinResult, PendingResponse, SyncResult
from tests.coordinator.membership.gathering import RANGE, SUBSCRIPTION, Coordinator

KAFKA_VERSIONS = ("0.10.2", "2.0", "2.3", "2.5", "3.9", "4.4")
PREFERENCES: tuple[Protocols, ...] = (
    RANGE,
    (*RANGE, ("sticky", b"s")),
    (("sticky", SUBSCRIPTION), *RANGE),
    (("sticky", b"other"),),
)
INSTANCES = (None, None, "i1", "i2")
LONGEST_MS = 3_600_000
"""By then nobody waits any more: a new member's five minutes, and all sessions and gatherings, are over."""


class Members(RuleBasedStateMachine):
    """One group, and everybody who has ever been told a member id in it."""

    @initialize(
        kafka_version=st.sampled_from(KAFKA_VERSIONS), size_max=st.sampled_from(["2", "100"]), delay=st.integers(0, 1)
    )
    def prepare_rebalance(self, kafka_version: str, size_max: str, delay: int) -> None:
        self.coordinator = Coordinator(
            kafka_version, group_max_size=size_max, group_initial_rebalance_delay_ms=str(delay * 3000)
        )
        self.ids: list[tuple[str, str | None]] = []
        """With their instances."""
        self.joins: list[PendingResponse[JoinResult]] = []
        self.syncs: list[tuple[str, int, PendingResponse[SyncResult]]] = []
        self.generation = 0
        self.told: dict[int, JoinResult] = {}
        """Of each generation the leader's answer."""
        self.followers: dict[int, set[tuple[str, str | None]]] = {}
        """Leader and protocol that the others were told."""
        self.handed_in: dict[int, dict[str, bytes]] = {}
        """What the leader of each generation assigned first, by member."""
        self.assignments: dict[tuple[int, str], bytes] = {}

    @property
    def group(self) -> Group | None:
        return self.coordinator.state.coordinator.groups.get("g")

    def member(self, data: st.DataObject) -> tuple[str, str | None]:
        return data.draw(st.sampled_from(self.ids), label="member")

    # What happens.

    @rule(
        protocols=st.sampled_from(PREFERENCES),
        instance=st.sampled_from(INSTANCES),
        requires_known_member_id=st.booleans(),
        supports_skipping_assignment=st.booleans(),
        timeouts=st.sampled_from([(5_000, 10_000), (20_000, 5_000), (60_000, 60_000)]),
        settle=st.booleans(),
    )
    def somebody_joins(
        self,
        protocols: Protocols,
        instance: str | None,
        requires_known_member_id: bool,
        supports_skipping_assignment: bool,
        timeouts: tuple[int, int],
        settle: bool,
    ) -> None:
        session_ms, rebalance_ms = timeouts
        kafka_version = self.coordinator.state.kafka_version
        response = self.coordinator.join(
            instance=instance if kafka_version.at_least(2, 3) else None,
            protocols=protocols,
            session_ms=session_ms,
            rebalance_ms=rebalance_ms,
            requires_known_member_id=requires_known_member_id and kafka_version.at_least(2, 2),
            supports_skipping_assignment=supports_skipping_assignment,
            settle=settle,
        )
        self.joins.append(response)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), protocols=st.sampled_from(PREFERENCES))
    def somebody_joins_again(self, data: st.DataObject, protocols: Protocols) -> None:
        member_id, instance = self.member(data)
        self.joins.append(self.coordinator.join(member_id, instance=instance, protocols=protocols))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), assigns=st.booleans())
    def somebody_syncs(self, data: st.DataObject, assigns: bool) -> None:
        member_id, instance = self.member(data)
        group = self.group
        generation = -1 if group is None else group.generation
        assignments: dict[str, bytes] = {}
        if group is not None and assigns:
            assignments = {
                name: f"{generation} {number}".encode() for number, name in enumerate([*group.members, "ghost"])
            }
        if group is not None and group.leader_id == member_id and group.state is GroupState.COMPLETING_REBALANCE:
            self.handed_in.setdefault(generation, assignments)
        response = self.coordinator.sync(member_id, assignments, instance=instance)
        self.syncs.append((member_id, generation, response))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), is_late=st.booleans())
    def somebody_lives(self, data: st.DataObject, is_late: bool) -> None:
        member_id, instance = self.member(data)
        error = self.coordinator.heartbeat(member_id, self.generation - is_late, instance)
        assert error in (0, 22, 25, 27, 82)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), by_instance=st.booleans())
    def somebody_leaves(self, data: st.DataObject, by_instance: bool) -> None:
        member_id, instance = self.member(data)
        (error,) = self.coordinator.leave(("" if by_instance else member_id, instance))
        assert error in (0, 25, 82)
        assert self.group is None or member_id not in self.group.members or error or by_instance

    @rule(duration_ms=st.sampled_from([1, 900, 3000, 4999, 5000, 20_000, 61_000, 300_000]))
    def time_passes(self, duration_ms: int) -> None:
        self.coordinator.pass_time(duration_ms)

    # What is so then.

    @invariant()
    def answers_agree(self) -> None:
        waiting = []
        for response in self.joins:
            result = response.result
            if result is None:
                waiting.append(response)
                continue
            assert result.error in (0, 23, 25, 79, 81, 82), result
            if result.error in (0, 79):
                self.learn_id(result.member_id)
            if result.error == 0:
                self.learn_generation(result)
        self.joins = waiting

    def learn_id(self, member_id: str) -> None:
        if all(member_id != known for known, _ in self.ids):
            group = self.group
            member = None if group is None else group.members.get(member_id)
            self.ids.append((member_id, None if member is None else member.group_instance_id))

    def learn_generation(self, result: JoinResult) -> None:
        assert result.generation >= 1
        assert result.protocol_type == "consumer"
        if result.members and not result.skip_assignment:
            before = self.told.setdefault(result.generation, result)
            if before.leader_id == result.leader_id:
                assert before.protocol_name == result.protocol_name
            assert result.leader_id == result.member_id
            assert result.member_id in {member.member_id for member in result.members}

    @invariant()
    def assignments_are_the_leaders(self) -> None:
        waiting = []
        for member_id, generation, response in self.syncs:
            result = response.result
            if result is None:
                waiting.append((member_id, generation, response))
                continue
            assert result.error in (0, 22, 25, 27, 82), result
            if result.error == 0:
                assert self.assignments.setdefault((generation, member_id), result.assignment) == result.assignment
                handed_in = self.handed_in[generation]
                assert result.assignment in {b"", *handed_in.values()}
                assert result.assignment != handed_in.get("ghost") or not result.assignment
                if member_id in handed_in:
                    assert result.assignment == handed_in[member_id]
        self.syncs = waiting

    @invariant()
    def the_group_agrees_with_itself(self) -> None:
        group = self.group
        if group is None:
            return
        assert group.generation >= self.generation or group.generation == 0
        self.generation = group.generation
        members = group.members
        assert not members or group.state is not GroupState.EMPTY
        # A first gathering goes on even if those who have come are gone, and ids that were given out are waited for.
        waits = isinstance(group.phase, InitialDelayedJoin) or group.pending_members
        assert members or group.state is GroupState.EMPTY or waits
        assert group.state is not GroupState.DEAD
        assert group.leader_id in members if members else group.leader_id is None
        assert group.pending_join_count == sum(member.pending_join is not None for member in members.values())
        assert group.static_members == {
            m.group_instance_id: m.member_id for m in members.values() if m.group_instance_id
        }
        names = {name for member in members.values() for name, _ in member.protocols}
        assert group.protocol_counts == {
            name: sum(name in dict(member.protocols) for member in members.values()) for name in names
        }
        assert not members or len(members) in group.protocol_counts.values()
        gathers = group.state is GroupState.PREPARING_REBALANCE
        assert gathers == (group.phase is not None and not isinstance(group.phase, DelayedSync))
        assert gathers or all(member.pending_join is None for member in members.values())
        assert group.state is GroupState.COMPLETING_REBALANCE or all(m.pending_sync is None for m in members.values())
        assert group.pending_sync_members <= set(members)
        assert not set(group.pending_members) & set(members)

    @invariant()
    def somebody_will_look(self) -> None:
        """What time has to end has its timer."""
        group = self.group
        if group is None:
            return
        assert (group.phase is None) == (group.phase_timer is None)
        if group.phase is not None and group.phase_timer is not None:
            assert (group.phase_timer.due_ms, group.phase_timer.action is None) == (group.phase.due_ms, False)
        deadlines = list(group.pending_members.values())
        deadlines += [
            m.session_deadline_ms for m in group.members.values() if m.pending_join is None and m.pending_sync is None
        ]
        deadlines += [m.session_deadline_ms for m in group.members.values() if m.is_new]
        if deadlines:
            timer = group.session_timer
            assert timer is not None
            assert timer.action is not None
            assert timer.due_ms <= min(deadlines)

    def teardown(self) -> None:
        if not hasattr(self, "coordinator"):
            return
        for _ in range(20):
            self.coordinator.pass_time(LONGEST_MS // 20)
            self.answers_agree()
            self.assignments_are_the_leaders()
            self.the_group_agrees_with_itself()
        assert self.joins == []
        assert self.syncs == []
        assert self.group is None or (self.group.state is GroupState.EMPTY and not self.group.pending_members)


Members.TestCase.settings = settings(stateful_step_count=40)
TestMembers = Members.TestCase
