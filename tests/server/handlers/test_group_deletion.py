"""OffsetDelete, DeleteGroups, and the offsets of deleted topics (EX-60 to EX-63, GP-43)."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto_server.coordinator.deletion import forget_topics
from kproto_server.coordinator.groups import Group, GroupState, Member
from kproto_server.coordinator.membership.members import extend_session
from kproto_server.testing import virtual_clock
from tests.coordinator.broker_state import NOW_MS, ask, commit, group_with, new_state
from tests.coordinator.change_logs import Appended, RecordingLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.state import BrokerState

OLD_AND_NEW = pytest.mark.parametrize("kafka_version", ["2.8", "3.9", "4.4", "latest"])


def offset_delete(group_id: str, *topics: tuple[str, Iterable[int]]) -> OffsetDeleteRequest:
    asked = tuple(
        OffsetDeleteRequestTopic(
            name=name, partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in indexes)
        )
        for name, indexes in topics
    )
    return OffsetDeleteRequest(group_id=group_id, topics=asked)


def delete_offsets(state: BrokerState, group_id: str, topics: dict[str, list[int]], node_id: int = 1) -> Any:
    """Return the top-level error and the partitions of an OffsetDelete response."""
    response = ask(state, offset_delete(group_id, *topics.items()), 0, node_id=node_id)
    return response.error_code, [
        (topic.name, p.partition_index, p.error_code) for topic in response.topics for p in topic.partitions
    ]


def delete_groups(state: BrokerState, *names: str, node_id: int = 1) -> list[tuple[str, int]]:
    response = ask(state, DeleteGroupsRequest(groups_names=names), 2, node_id=node_id)
    return [(result.group_id, result.error_code) for result in response.results]


def live(state: BrokerState, group_state: GroupState = GroupState.STABLE, protocol_type: str = "consumer") -> Group:
    """Return a group with a member that subscribes to "u", and with offsets of "t" and "u"."""
    commit(state, "g", {"t": {0: 1}, "u": {0: 1}})
    group = group_with(state, "g", group_state, [Member("m")], protocol_type=protocol_type)
    group.subscribed_topics = frozenset({"u"})
    return group


def offsets_of(state: BrokerState, group_id: str) -> dict[str, list[int]]:
    return {topic: list(partitions) for topic, partitions in state.coordinator.offsets.of_group(group_id).items()}


# OffsetDelete.


@OLD_AND_NEW
def test_offsets_are_deleted_one_by_one(kafka_version: str) -> None:
    """EX-62: no error for missing offsets; UNKNOWN_TOPIC_OR_PARTITION for missing topics and partitions."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1, 1: 1}, "u": {0: 1}})
    error, responses = delete_offsets(state, "g", {"t": [0, 2, 9], "nope": [0]})
    assert (error, sorted(responses)) == (0, [("nope", 0, 3), ("t", 0, 0), ("t", 2, 0), ("t", 9, 3)])
    assert offsets_of(state, "g") == {"t": [1], "u": [0]}


@pytest.mark.parametrize(("kafka_version", "times"), [("2.8", 1), ("3.9", 1), ("4.4", 2)])
def test_partition_named_twice(kafka_version: str, times: int) -> None:
    """Measured on 2.8.2, 3.2.3, 3.9.2 and 4.4.0: each topic once, missing ones first, no topic without partitions."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1, 1: 1}})
    (topic,) = ask(state, offset_delete("g", ("u", ()), ("t", (1, 1, 9)), ("t", (0,))), 0).topics
    returned = [(p.partition_index, p.error_code) for p in topic.partitions]
    assert returned == [(9, 3), *[(1, 0)] * times, (0, 0)]


@pytest.mark.parametrize(("kafka_version", "times"), [("2.8", 1), ("3.4", 1), ("3.5", 2), ("3.9", 2), ("4.4", 2)])
def test_unknown_partition_named_twice(kafka_version: str, times: int) -> None:
    """Measured on 2.8.2, 3.0.2, 3.4.1, 3.5.2, 3.9.2 and 4.4.0."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    assert delete_offsets(state, "g", {"t": [9, 9]}) == (0, [("t", 9, 3)] * times)


@pytest.mark.parametrize(
    ("kafka_version", "expected"), [("3.9", [("t", [1, 2])]), ("4.4", [("t", [1, 2]), ("t", [1])])]
)
def test_topic_named_twice(kafka_version: str, expected: list[tuple[str, list[int]]]) -> None:
    """From 4.0 on the response repeats the topic, if all partitions exist; measured before and after."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    topics = ask(state, offset_delete("g", ("t", (1, 2)), ("t", (1,))), 0).topics
    assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in topics] == expected


@pytest.mark.parametrize(("kafka_version", "expected"), [("3.4", []), ("3.5", ["nope"]), ("4.4", ["nope"])])
def test_unknown_topic_without_partitions(kafka_version: str, expected: list[str]) -> None:
    """Measured on 2.8.2, 3.2.3, 3.9.2 and 4.4.0."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    topics = (OffsetDeleteRequestTopic(name="nope", partitions=()),)
    response = ask(state, OffsetDeleteRequest(group_id="g", topics=topics), 0)
    assert [(topic.name, topic.partitions) for topic in response.topics] == [(name, ()) for name in expected]


@OLD_AND_NEW
def test_offset_delete_rejects_the_whole_request(kafka_version: str) -> None:
    """EX-62: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND and NOT_COORDINATOR, without topics."""
    state = new_state(kafka_version, node_count=2)
    for partition in state.cluster.topics["__consumer_offsets"].partitions:
        partition.leader = 1
    assert delete_offsets(state, "", {"t": [0]}) == (24, [])
    assert delete_offsets(state, "g", {"t": [0], "nope": [0]}) == (69, [])
    assert delete_offsets(state, "g", {"t": [0]}, node_id=2) == (16, [])


@OLD_AND_NEW
@pytest.mark.parametrize(
    "group_state", [GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE]
)
def test_subscribed_topics_are_kept(kafka_version: str, group_state: GroupState) -> None:
    """EX-62."""
    state = new_state(kafka_version)
    live(state, group_state)
    assert delete_offsets(state, "g", {"t": [0], "u": [0]}) == (0, [("t", 0, 0), ("u", 0, 86)])
    assert offsets_of(state, "g") == {"u": [0]}


@OLD_AND_NEW
def test_unknown_subscription_keeps_all_offsets(kafka_version: str) -> None:
    """EX-63."""
    state = new_state(kafka_version)
    live(state, GroupState.PREPARING_REBALANCE).subscribed_topics = None
    assert delete_offsets(state, "g", {"t": [0], "u": [0]}) == (0, [("t", 0, 86), ("u", 0, 86)])
    assert offsets_of(state, "g") == {"t": [0], "u": [0]}


@OLD_AND_NEW
def test_members_that_are_no_consumers_keep_all_offsets(kafka_version: str) -> None:
    """EX-62: NON_EMPTY_GROUP for the whole request."""
    state = new_state(kafka_version)
    live(state, protocol_type="connect")
    assert delete_offsets(state, "g", {"t": [0]}) == (68, [])


@pytest.mark.parametrize(("kafka_version", "goes"), [("2.8", True), ("3.9", True), ("4.4", False), ("latest", False)])
def test_empty_group_is_removed_with_its_last_offset(kafka_version: str, goes: bool) -> None:
    """Up to 3.9 at once, later by the next expiration run (EX-33); measured on 2.8.2, 3.9.2 and 4.4.0."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    state.coordinator.log = log = RecordingLog()
    assert delete_offsets(state, "g", {"t": [0, 1]}) == (0, [("t", 0, 0), ("t", 1, 0)])
    assert (state.coordinator.group("g") is None) is goes
    assert log.appended == [Appended(3, "g", [("t", 0, None)], removes_group=goes)]


@pytest.mark.parametrize(("kafka_version", "goes"), [("2.8", True), ("3.9", True), ("4.4", False)])
@pytest.mark.parametrize("index", [0, 9])
def test_pending_member_ids_are_removed_with_the_group(kafka_version: str, goes: bool, index: int) -> None:
    """Up to 3.9 an empty group is removed even if it has no offset to delete: UNKNOWN_MEMBER_ID afterwards (GP-15).

    Measured on 2.4.1, 2.8.2, 3.9.2, 4.0.0 and 4.4.0.
    """
    state = new_state(kafka_version)
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    asked = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, member_id="", protocol_type="consumer", protocols=protocols
    )
    assert ask(state, asked, 4).error_code == 79
    assert delete_offsets(state, "g", {"t": [index]}) == (0, [("t", index, 3 if index == 9 else 0)])
    assert (state.coordinator.group("g") is None) is (goes and index == 0)


@OLD_AND_NEW
def test_last_offset_leaves_a_group_with_members(kafka_version: str) -> None:
    """EX-35."""
    state = new_state(kafka_version)
    group = live(state)
    group.subscribed_topics = frozenset()
    assert delete_offsets(state, "g", {"t": [0], "u": [0]}) == (0, [("t", 0, 0), ("u", 0, 0)])
    assert state.coordinator.group("g") is group
    assert offsets_of(state, "g") == {}


def test_nothing_to_delete_writes_nothing() -> None:
    """EX-62."""
    state = new_state()
    commit(state, "g", {"t": {0: 1}})
    state.coordinator.log = log = RecordingLog(error=10)
    assert delete_offsets(state, "g", {"t": [1], "u": [0]}) == (0, [("t", 1, 0), ("u", 0, 0)])
    assert log.appended == []


def test_failed_tombstones_delete_nothing() -> None:
    """OC-35, OC-36, for deletions."""
    state = new_state("4.4")
    commit(state, "g", {"t": {0: 1}})
    state.coordinator.log = RecordingLog(error=6)
    assert delete_offsets(state, "g", {"t": [0]}) == (16, [])
    assert delete_groups(state, "g") == [("g", 16)]
    assert offsets_of(state, "g") == {"t": [0]}
    assert state.coordinator.group("g") is not None


# DeleteGroups.


def test_a_member_whose_session_ends_now_is_gone() -> None:
    """Its timer fires behind the request of the same millisecond; librdkafka's test 0081 waits exactly that long."""
    state = new_state(clock=virtual_clock(NOW_MS))
    members = [Member("m", group_instance_id="i", session_timeout_ms=6000), Member("n", session_timeout_ms=6001)]
    for group_id, member in zip("gh", members, strict=True):
        extend_session(group_with(state, group_id, GroupState.STABLE, [member]), member, NOW_MS - 6000)
    assert delete_groups(state, "g", "h") == [("g", 0), ("h", ErrorCode.NON_EMPTY_GROUP)]


@OLD_AND_NEW
def test_groups_are_deleted_with_their_offsets(kafka_version: str) -> None:
    """EX-61, OC-9: simple groups are Empty, and "" is a group id."""
    state = new_state(kafka_version)
    commit(state, "g1", {"t": {0: 1, 1: 1}})
    commit(state, "", {"t": {0: 1}})
    state.coordinator.log = log = RecordingLog()
    assert sorted(delete_groups(state, "g1", "", "unknown")) == [("", 0), ("g1", 0), ("unknown", 69)]
    assert (len(state.coordinator.groups), len(state.coordinator.offsets)) == (0, 0)
    assert sorted(log.appended, key=attrgetter("partition")) == [
        Appended(0, "", [("t", 0, None)], removes_group=True),
        Appended(42, "g1", [("t", 0, None), ("t", 1, None)], removes_group=True),
    ]
    assert delete_groups(state, "g1") == [("g1", 69)]


@OLD_AND_NEW
@pytest.mark.parametrize(
    "group_state", [GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE]
)
def test_groups_with_members_stay(kafka_version: str, group_state: GroupState) -> None:
    """EX-61."""
    state = new_state(kafka_version)
    live(state, group_state)
    assert delete_groups(state, "g") == [("g", 68)]
    assert offsets_of(state, "g") == {"t": [0], "u": [0]}


@OLD_AND_NEW
def test_groups_are_deleted_by_their_coordinator(kafka_version: str) -> None:
    """EX-61: NOT_COORDINATOR before GROUP_ID_NOT_FOUND."""
    state = new_state(kafka_version, node_count=2)
    for partition in state.cluster.topics["__consumer_offsets"].partitions:
        partition.leader = 1
    commit(state, "g", {"t": {0: 1}})
    assert delete_groups(state, "g", "unknown", node_id=2) == [("g", 16), ("unknown", 16)]
    assert delete_groups(state, "g") == [("g", 0)]


@OLD_AND_NEW
def test_repeated_group_has_one_result(kafka_version: str) -> None:
    """EX-61; measured on 1.1.1 to 4.4.0."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    assert delete_groups(state, "g", "unknown", "g") == [("g", 0), ("unknown", 69)]


def test_deleted_group_id_is_a_new_group() -> None:
    """EX-36."""
    state = new_state()
    group_with(state, "g", GroupState.EMPTY, generation=7)
    assert delete_groups(state, "g") == [("g", 0)]
    commit(state, "g", {"t": {0: 1}})
    group = state.coordinator.group("g")
    assert group is not None
    assert (group.generation, group.protocol_type) == (0, None)


# Deleted topics (EX-60).


@pytest.mark.parametrize(("kafka_version", "group_stays"), [("2.0", False), ("3.9", False), ("4.4", True)])
def test_offsets_are_deleted_with_their_topic(kafka_version: str, group_stays: bool) -> None:
    """EX-60, OF-16: in each group, in any state."""
    state = new_state(kafka_version)
    commit(state, "simple", {"t": {0: 1}})
    commit(state, "both", {"t": {0: 1, 2: 1}, "u": {0: 1}})
    live(state).subscribed_topics = frozenset({"t"})
    state.coordinator.log = log = RecordingLog()
    forget_topics(state.coordinator, ["t", "nope"], NOW_MS)
    assert [offsets_of(state, group_id) for group_id in ("simple", "both", "g")] == [{}, {"u": [0]}, {"u": [0]}]
    assert (state.coordinator.group("simple") is not None) is group_stays
    assert {appended.group_id for appended in log.appended} == {"simple", "both", "g"}


def test_offsets_stay_if_their_tombstones_cannot_be_written() -> None:
    """EX-60, OS-15: the tables never differ from the log."""
    state = new_state()
    commit(state, "g", {"t": {0: 1}})
    state.coordinator.log = RecordingLog(error=6)
    forget_topics(state.coordinator, ["t"], NOW_MS)
    assert offsets_of(state, "g") == {"t": [0]}


@pytest.mark.parametrize(("kafka_version", "errors"), [("1.1", [24, 24]), ("2.0", [0, 69]), ("4.4", [0, 69])])
def test_the_group_with_the_empty_id_is_deleted(kafka_version: str, errors: list[int]) -> None:
    """Measured on 1.1.1, 2.0.1, 3.9.2 and 4.4.0."""
    state = new_state(kafka_version)
    commit(state, "", {"t": {0: 1}}, version=2)
    assert [ask(state, DeleteGroupsRequest(groups_names=("",)), 0).results[0].error_code for _ in errors] == errors
