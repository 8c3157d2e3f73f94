"""The invariants of a group hold after any actions of its members, in any order.

Method: Hypothesis has members join, sync, send heartbeats, leave and stay silent at random, on a virtual clock, and a
test hold and release rebalances. After
each step the data of the group must be consistent, and the responses must agree with earlier ones:

- a generation has one leader, one protocol and one set of members in all responses;
- generations only increase;
- a member has one assignment in a generation, which is the leader's;
- each request gets a response, if only time passes.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kproto.codes import ErrorCode
from kproto_server.coordinator.groups import Group, GroupState, Protocols
from kproto_server.coordinator.membership import holding
from kproto_server.coordinator.membership.phases import DelayedSync, HeldJoin, HeldPhase, Hold, InitialDelayedJoin
from kproto_server.coordinator.membership.responses import JoinResult, PendingResponse, SyncResult
from tests.coordinator.membership.group_driver import RANGE, SUBSCRIPTION, GroupDriver

KAFKA_VERSIONS = ("0.10.2", "2.0", "2.3", "2.5", "3.9", "4.4")
PREFERENCES: tuple[Protocols, ...] = (
    RANGE,
    (*RANGE, ("sticky", b"s")),
    (("sticky", SUBSCRIPTION), *RANGE),
    (("sticky", b"other"),),
)
INSTANCES = (None, None, "i1", "i2")
LONGEST_MS = 3_600_000
"""No request is pending after this: the timeout of new members, all sessions and all rebalances are over."""


class Members(RuleBasedStateMachine):
    """One group, and all members that ever got an id in it."""

    @initialize(
        kafka_version=st.sampled_from(KAFKA_VERSIONS), size_max=st.sampled_from(["2", "100"]), delay=st.integers(0, 1)
    )
    def create_group(self, kafka_version: str, size_max: str, delay: int) -> None:
        self.driver = GroupDriver(
            kafka_version, group_max_size=size_max, group_initial_rebalance_delay_ms=str(delay * 3000)
        )
        self.ids: list[tuple[str, str | None]] = []
        """Member ids with their instance ids."""
        self.joins: list[PendingResponse[JoinResult]] = []
        self.syncs: list[tuple[str, int, PendingResponse[SyncResult]]] = []
        self.generation = 0
        self.leaders: dict[int, JoinResult] = {}
        """The leader's result of each generation."""
        self.followers: dict[int, set[tuple[str, str | None]]] = {}
        """The leader and the protocol in the results of the other members."""
        self.leader_assignments: dict[int, dict[str, bytes]] = {}
        """The first assignments of each generation's leader, by member."""
        self.assignments: dict[tuple[int, str], bytes] = {}

    @property
    def group(self) -> Group | None:
        return self.driver.state.coordinator.groups.get("g")

    def member(self, data: st.DataObject) -> tuple[str, str | None]:
        return data.draw(st.sampled_from(self.ids), label="member")

    # Actions.

    @rule(
        protocols=st.sampled_from(PREFERENCES),
        instance=st.sampled_from(INSTANCES),
        requires_known_member_id=st.booleans(),
        supports_skipping_assignment=st.booleans(),
        timeouts=st.sampled_from([(5_000, 10_000), (20_000, 5_000), (60_000, 60_000)]),
        settle=st.booleans(),
    )
    def new_member_joins(
        self,
        protocols: Protocols,
        instance: str | None,
        requires_known_member_id: bool,
        supports_skipping_assignment: bool,
        timeouts: tuple[int, int],
        settle: bool,
    ) -> None:
        session_ms, rebalance_ms = timeouts
        kafka_version = self.driver.state.kafka_version
        response = self.driver.join(
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
    def member_rejoins(self, data: st.DataObject, protocols: Protocols) -> None:
        member_id, instance = self.member(data)
        self.joins.append(self.driver.join(member_id, instance=instance, protocols=protocols))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), assigns=st.booleans())
    def member_syncs(self, data: st.DataObject, assigns: bool) -> None:
        member_id, instance = self.member(data)
        group = self.group
        generation = -1 if group is None else group.generation
        assignments: dict[str, bytes] = {}
        if group is not None and assigns:
            assignments = {
                name: f"{generation} {number}".encode() for number, name in enumerate([*group.members, "ghost"])
            }
        if group is not None and group.leader_id == member_id and group.state is GroupState.COMPLETING_REBALANCE:
            self.leader_assignments.setdefault(generation, assignments)
        response = self.driver.sync(member_id, assignments, instance=instance)
        self.syncs.append((member_id, generation, response))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), is_late=st.booleans())
    def member_sends_heartbeat(self, data: st.DataObject, is_late: bool) -> None:
        member_id, instance = self.member(data)
        error = self.driver.heartbeat(member_id, self.generation - is_late, instance)
        assert error in (
            0,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.FENCED_INSTANCE_ID,
        )

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), by_instance=st.booleans())
    def member_leaves(self, data: st.DataObject, by_instance: bool) -> None:
        member_id, instance = self.member(data)
        (error,) = self.driver.leave(("" if by_instance else member_id, instance))
        assert error in (0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
        assert self.group is None or member_id not in self.group.members or error or by_instance

    @rule(duration_ms=st.sampled_from([1, 900, 3000, 4999, 5000, 20_000, 61_000, 300_000]))
    def time_passes(self, duration_ms: int) -> None:
        self.driver.pass_time(duration_ms)

    @rule(phase=st.sampled_from(["join", "sync"]))
    def rebalances_are_held(self, phase: HeldPhase) -> None:
        self.driver.state.coordinator.holds["g"] = Hold(phase)

    @rule()
    def rebalances_are_released(self) -> None:
        holding.release(self.driver.state.coordinator, "g", self.driver.clock.now_ms())

    # Invariants.

    @invariant()
    def join_results_agree(self) -> None:
        pending = []
        for response in self.joins:
            result = response.result
            if result is None:
                pending.append(response)
                continue
            assert result.error in (
                0,
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.MEMBER_ID_REQUIRED,
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                ErrorCode.FENCED_INSTANCE_ID,
            ), result
            if result.error in (0, ErrorCode.MEMBER_ID_REQUIRED):
                self.learn_id(result.member_id)
            if result.error == 0:
                self.learn_generation(result)
        self.joins = pending

    def learn_id(self, member_id: str) -> None:
        if all(member_id != known for known, _ in self.ids):
            group = self.group
            member = None if group is None else group.members.get(member_id)
            self.ids.append((member_id, None if member is None else member.group_instance_id))

    def learn_generation(self, result: JoinResult) -> None:
        assert result.generation >= 1
        assert result.protocol_type == "consumer"
        if result.members and not result.skip_assignment:
            before = self.leaders.setdefault(result.generation, result)
            if before.leader_id == result.leader_id:
                assert before.protocol_name == result.protocol_name
            assert result.leader_id == result.member_id
            assert result.member_id in {member.member_id for member in result.members}

    @invariant()
    def assignments_are_those_of_the_leader(self) -> None:
        pending = []
        for member_id, generation, response in self.syncs:
            result = response.result
            if result is None:
                pending.append((member_id, generation, response))
                continue
            assert result.error in (
                0,
                ErrorCode.ILLEGAL_GENERATION,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.REBALANCE_IN_PROGRESS,
                ErrorCode.FENCED_INSTANCE_ID,
            ), result
            if result.error == 0:
                assert self.assignments.setdefault((generation, member_id), result.assignment) == result.assignment
                leader_assignments = self.leader_assignments[generation]
                assert result.assignment in {b"", *leader_assignments.values()}
                assert result.assignment != leader_assignments.get("ghost") or not result.assignment
                if member_id in leader_assignments:
                    assert result.assignment == leader_assignments[member_id]
        self.syncs = pending

    @invariant()
    def group_is_consistent(self) -> None:
        group = self.group
        if group is None:
            return
        assert group.generation >= self.generation or group.generation == 0
        self.generation = group.generation
        members = group.members
        assert not members or group.state is not GroupState.EMPTY
        # The initial rebalance delay continues even if all members have left, and pending member ids keep a rebalance.
        waits = isinstance(group.phase, (InitialDelayedJoin, HeldJoin)) or group.pending_members
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
        is_preparing = group.state is GroupState.PREPARING_REBALANCE
        assert is_preparing == (group.phase is not None and not isinstance(group.phase, DelayedSync))
        assert is_preparing or all(member.pending_join is None for member in members.values())
        assert group.state is GroupState.COMPLETING_REBALANCE or all(m.pending_sync is None for m in members.values())
        assert group.pending_sync_members <= set(members)
        assert not set(group.pending_members) & set(members)

    @invariant()
    def deadlines_have_timers(self) -> None:
        """Each deadline has a timer that is not later."""
        group = self.group
        if group is None:
            return
        is_held = isinstance(group.phase, HeldJoin)
        assert (group.phase is None or is_held) == (group.phase_timer is None)
        if not isinstance(group.phase, HeldJoin) and group.phase is not None and group.phase_timer is not None:
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
        if not hasattr(self, "driver"):
            return
        self.rebalances_are_released()
        for _ in range(20):
            self.driver.pass_time(LONGEST_MS // 20)
            self.join_results_agree()
            self.assignments_are_those_of_the_leader()
            self.group_is_consistent()
        assert self.joins == []
        assert self.syncs == []
        assert self.group is None or (self.group.state is GroupState.EMPTY and not self.group.pending_members)


Members.TestCase.settings = settings(stateful_step_count=40)
TestMembers = Members.TestCase
