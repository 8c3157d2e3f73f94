"""Consumer groups with a data directory: a restart has the group as its members know it, and a failed write undoes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto_server.coordinator.consumer_groups.data import MemberState
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.coordinator.groups import GroupState
from kproto_server.testing import virtual_clock
from tests.consumer_groups.members import Conversation
from tests.coordinator.broker_state import ask, new_state
from tests.coordinator.change_logs import RecordingLog
from tests.persistence.disk_broker import DiskBroker
from tests.share_groups.test_restarts import DiskTransport

if TYPE_CHECKING:
    from kproto_server.configuration.data_directory import Durability
    from kproto_server.state import BrokerState

RELEASES = ["4.0", "4.4"]
SETTINGS = {"num.partitions": "5", "group.consumer.assignment.interval.ms": "0"}

MEMBER_FIELDS: tuple[str, ...] = (
    *("group_instance_id", "rack_id", "topics", "regex", "assignor", "client_id", "client_host"),
    *("rebalance_timeout_ms", "session_timeout_ms", "protocols", "speaks_classic"),
    *("epoch", "previous_epoch", "state", "assigned", "revoking"),
)


class Group:
    """Members that send heartbeats to a broker on a simulated disk."""

    def __init__(self, durability: Durability, release: str) -> None:
        self.release = release
        self.broker = DiskBroker(durability, SETTINGS, kafka_version=release)
        for _ in range(2):
            self.broker.ask(FindCoordinatorRequest(key="g"), 2)
            self.broker.ask(MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), 4)
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, Any] = {}

    def join(self, member_id: str, **fields: Any) -> Any:
        self.epochs[member_id], self.owned[member_id] = 0, ()
        given = {"rebalance_timeout_ms": 9000, "subscribed_topic_names": ("t",), **fields}
        return self.beat(member_id, **given)

    def beat(self, member_id: str, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=fields.pop("epoch", self.epochs[member_id]),
            topic_partitions=self.owned[member_id],
            **fields,
        )
        response = self.broker.ask(request, 1)
        if not response.error_code:
            self.epochs[member_id] = response.member_epoch
            if response.assignment is not None:
                self.owned[member_id] = response.assignment.topic_partitions
        return response

    @property
    def group(self) -> ConsumerGroup:
        found = self.broker.broker.state.coordinator.groups.get("g")
        assert isinstance(found, ConsumerGroup)
        return found

    def as_values(self) -> tuple[Any, ...]:
        """Return all of the group that the log has."""
        data = self.group.data
        names, assigned_ms = (*MEMBER_FIELDS, "partition_epochs"), data.assignment_timestamp_ms
        if self.release == "4.0":  # its log has no times of assignments, and no epochs of partitions
            names, assigned_ms = MEMBER_FIELDS, 0
        members = {member_id: [getattr(member, name) for name in names] for member_id, member in data.members.items()}
        resolved = {regex: (found.topics, found.timestamp_ms) for regex, found in data.resolved.items()}
        changed = {"members": members, "assignment_timestamp_ms": assigned_ms, "resolved": resolved}
        values = data._asdict() | changed
        return *values.values(), self.group.state

    def kill(self) -> None:
        self.broker.persistence.flush()
        self.broker.persistence.drain()
        self.broker.kill()
        self.broker.persistence.drain()
        self.broker.run_posted()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_a_reconciliation_goes_on_after_a_restart(durability: Durability, release: str) -> None:
    group = Group(durability, release)
    group.join("A", rack_id="r", server_assignor="range")
    group.join("B", instance_id="i", subscribed_topic_regex="t.*")
    group.broker.advance(1)
    group.beat("A")
    assert group.group.data.members["A"].state is MemberState.UNREVOKED_PARTITIONS
    for _ in range(2):
        before = group.as_values()
        group.kill()
        assert group.as_values() == before
        for member_id in "ABAB":
            group.beat(member_id)
    assert group.group.state is GroupState.STABLE
    assert sorted(len(member.assigned) for member in group.group.data.members.values()) == [1, 1]


@pytest.mark.parametrize("release", RELEASES)
def test_sessions_begin_again_with_a_restart(release: str) -> None:
    group = Group("fsync", release)
    group.join("A")
    group.broker.advance(40_000)
    group.kill()
    group.broker.advance(44_000)
    assert group.group.state.value == "Stable"
    group.broker.advance(2_000)
    assert group.group.state.value == "Empty"
    group.kill()
    assert group.group.state.value == "Empty"


def test_the_time_to_revoke_begins_again_with_a_restart() -> None:
    group = Group("fsync", "4.4")
    group.join("A")
    group.join("B")
    group.broker.advance(1)
    group.beat("A")
    group.kill()
    group.broker.advance(8_000)
    assert group.group.data.members["A"].state is MemberState.UNREVOKED_PARTITIONS
    group.broker.advance(1_000)
    assert list(group.group.data.members) == ["B"]


def test_a_classic_member_that_has_revoked_after_a_restart_stays() -> None:
    """The restart begins the time that it has to revoke; it was removed at the end of it."""
    transport = DiskTransport(DiskBroker("os", SETTINGS, kafka_version="4.4"))
    transport.at.broker.state.cluster.ensure_offsets_topic(0)
    group = Conversation(transport, "g", release="4.4")
    for _ in range(2):
        group.learn_topics("t")
    group.join_classic("C")
    group.sync("C", assigns={"t": range(5)})
    group.join("A")
    group.join_classic("C")
    members = transport.at.broker.state.coordinator.groups.get("g").data.members  # type: ignore[union-attr]
    assert members[group.members["C"].member_id].state is MemberState.UNREVOKED_PARTITIONS
    transport.kill()
    group.sync("C")
    group.join_classic("C")
    group.sync("C")
    for _ in range(7):
        group.pass_time(10_000)
        group.beat("A")
        group.beat_classic("C")
        [[response]] = group.steps[-1].responses.values()
        assert response["error_code"] == 0


@pytest.mark.parametrize("waits_ms", [0, 11_000])
def test_expressions_are_matched_again_after_a_restart(waits_ms: int) -> None:
    """The versions of the topics begin again with the process: new topics were not found for ten minutes."""
    transport = DiskTransport(DiskBroker("os", SETTINGS, kafka_version="4.4"))
    cluster = transport.at.broker.state.cluster
    cluster.ensure_offsets_topic(0)
    group = Conversation(transport, "g", release="4.4")
    for _ in range(2):
        group.learn_topics("t")
    for _ in range(10):
        cluster.changed()
    group.join("A", None, subscribed_topic_regex="t.*")
    group.beat("A")
    transport.kill()
    group.pass_time(waits_ms)
    group.beat("A")
    for _ in range(2):
        group.learn_topics("t", "t2")
    for _ in range(3):
        group.pass_time(6_000)
        group.beat("A")
    assert set(group.members["A"].assigned) == {"t", "t2"}


@pytest.mark.parametrize("release", RELEASES)
def test_a_deleted_group_stays_away(release: str) -> None:
    group = Group("fsync", release)
    group.join("A")
    group.beat("A", epoch=-1)
    response = group.broker.ask(DeleteGroupsRequest(groups_names=("g",)), 2)
    assert [one.error_code for one in response.results] == [0]
    group.kill()
    assert group.broker.broker.state.coordinator.groups.get("g") is None


@pytest.mark.parametrize("release", RELEASES)
def test_a_classic_group_in_place_of_an_empty_one_removes_its_records(release: str) -> None:
    """A member of the classic protocol joins: the log gets the tombstones of the consumer group in the same batch."""
    state = new_state(release, settings=SETTINGS, clock=virtual_clock())
    assert heartbeat(state, "A").member_epoch
    assert heartbeat(state, "A", member_epoch=-1).error_code == 0
    empty = state.coordinator.groups.get("g")
    assert isinstance(empty, ConsumerGroup)
    keys = empty.record_keys(state.coordinator.behavior)
    state.coordinator.log = log = RecordingLog()
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    ask(state, request, 5, now_ms=state.clock.now_ms())
    assert not isinstance(state.coordinator.groups.get("g"), ConsumerGroup)
    assert log.removed[0] == keys


def test_members_that_prefer_different_assignors_do_not_raise_the_epoch() -> None:
    group = Group("os", "4.4")
    group.join("A", server_assignor="uniform")
    group.join("B", server_assignor="range")
    for member_id in "ABABAB":
        group.beat(member_id)
    epoch = group.group.data.epoch
    for member_id in "ABAB":
        group.beat(member_id)
    assert group.group.data.epoch == epoch


@pytest.mark.parametrize("waits", [False, True])
def test_a_write_that_fails_is_undone(waits: bool) -> None:
    """Heartbeats that came meanwhile are undone, too."""
    state = new_state("4.4", settings=SETTINGS, clock=virtual_clock())
    assert heartbeat(state, "A").member_epoch == 2
    group = state.coordinator.groups.get("g")
    assert isinstance(group, ConsumerGroup)
    before, owners = group.data, dict(group.owners)
    state.coordinator.log = log = RecordingLog(int(ErrorCode.KAFKA_STORAGE_ERROR), waits=waits)
    deferred = [heartbeat(state, "B"), heartbeat(state, "C"), heartbeat(state, "new", group_id="h")]
    log.settle()
    if not waits:
        assert [response.error_code for response in deferred] == [ErrorCode.NOT_COORDINATOR] * 3
    assert (group.data, group.owners) == (before, owners)
    assert state.coordinator.groups.get("h") is None
    state.coordinator.log = RecordingLog()
    assert heartbeat(state, "B").member_id == "B"
    assert list(group.data.members) == ["A", "B"]


def heartbeat(state: BrokerState, member_id: str, group_id: str = "g", member_epoch: int = 0) -> Any:
    """Return the response to a member that joins, or the deferred one."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=member_epoch,
        rebalance_timeout_ms=9000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    return ask(state, request, 1, now_ms=state.clock.now_ms())
