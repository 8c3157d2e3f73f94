"""OffsetFetch: what is returned, and where errors stand (OF-3 to OF-39)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto_server.coordinator.groups import GroupState, Member
from tests.coordinator.broker_state import ask, commit, group_with, new_state
from tests.coordinator.consumer_group import add_consumer_group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto_server.state import BrokerState

OLD_AND_NEW = pytest.mark.parametrize("kafka_version", ["2.0", "2.8", "3.9", "4.4", "latest"])
SINGLE = pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6, 7])
BATCHED = pytest.mark.parametrize("version", [8, 9])
MISSING = (-1, -1, "", 0)

Row = tuple[str, int, int, int, str, int]
"""Topic, partition, offset, leader epoch, metadata, error."""


def fetch(
    state: BrokerState, group_id: str, topics: Mapping[str, Sequence[int]] | None, version: int, **options: Any
) -> tuple[list[Row], int]:
    """Return the rows of the response and the group's error; 0 where the version has no field for one."""
    node_id = options.pop("node_id", 1)
    if version >= 8:
        asked = (
            None
            if topics is None
            else tuple(
                OffsetFetchRequestTopics(name=name, partition_indexes=tuple(indexes))
                for name, indexes in topics.items()
            )
        )
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=asked, **options),))
        (response,) = ask(state, request, version, node_id=node_id).groups
    else:
        plain = (
            None
            if topics is None
            else tuple(
                OffsetFetchRequestTopic(name=name, partition_indexes=tuple(indexes)) for name, indexes in topics.items()
            )
        )
        response = ask(state, OffsetFetchRequest(group_id=group_id, topics=plain), version, node_id=node_id)
    return rows(response.topics), response.error_code


def rows(topics: Any) -> list[Row]:
    return [
        (topic.name, p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code)
        for topic in topics
        for p in topic.partitions
    ]


def elsewhere(state: BrokerState) -> None:
    """Let node 2 lead all offsets partitions."""
    for partition in state.cluster.topics["__consumer_offsets"].partitions:
        partition.leader = 2


# Values.


@SINGLE
@OLD_AND_NEW
def test_stored_offset_comes_back_as_it_was(kafka_version: str, version: int) -> None:
    """OF-15: offset, metadata exactly, no epoch is -1, null metadata is empty."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: (42, "grüße \U0001f600"), 1: (-5, None)}})
    assert fetch(state, "g", {"t": [0, 1]}, version) == (
        [("t", 0, 42, -1, "grüße \U0001f600", 0), ("t", 1, -5, -1, "", 0)],
        0,
    )


@BATCHED
def test_leader_epoch_comes_back(version: int) -> None:
    """OF-15, OC-46."""
    state = new_state()
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=5, committed_metadata="m"
    )
    topics = (OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
    ask(state, OffsetCommitRequest(group_id="g", topics=topics), 6)
    assert fetch(state, "g", {"t": [0]}, version)[0] == [("t", 0, 1, 5, "m", 0)]
    assert fetch(state, "g", {"t": [0]}, 5)[0] == [("t", 0, 1, 5, "m", 0)]


@pytest.mark.parametrize("version", range(1, 10))
@OLD_AND_NEW
def test_missing_offset_is_no_error(kafka_version: str, version: int) -> None:
    """OF-10: unknown group, topic and partition alike; OF-37: 69 is never sent."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    assert fetch(state, "unknown", {"t": [0]}, version) == ([("t", 0, *MISSING)], 0)
    assert fetch(state, "g", {"nope": [0]}, version) == ([("nope", 0, *MISSING)], 0)
    assert fetch(state, "g", {"t": [2, 99, -1]}, version) == ([("t", index, *MISSING) for index in (2, 99, -1)], 0)


@pytest.mark.parametrize("version", range(2, 10))
@OLD_AND_NEW
def test_null_topics_are_all(kafka_version: str, version: int) -> None:
    """OF-12, OF-18: sorted; of an unknown group an empty list."""
    state = new_state(kafka_version)
    commit(state, "g", {"u": {0: 9}})
    commit(state, "g", {"t": {2: 3, 0: 1}})
    assert fetch(state, "g", None, version) == (
        [("t", 0, 1, -1, "", 0), ("t", 2, 3, -1, "", 0), ("u", 0, 9, -1, "", 0)],
        0,
    )
    assert fetch(state, "unknown", None, version) == ([], 0)


@pytest.mark.parametrize("version", range(1, 10))
def test_no_topics_are_none(version: int) -> None:
    """OF-13."""
    state = new_state()
    commit(state, "g", {"t": {0: 1}})
    assert fetch(state, "g", {}, version) == ([], 0)


@pytest.mark.parametrize(
    ("kafka_version", "means_all"), [("0.8.2", False), ("0.9", True), ("0.10.1", True), ("0.10.2", False)]
)
def test_no_topics_once_meant_all(kafka_version: str, means_all: bool) -> None:
    """OF-13, but for 0.9 to 0.10.1 (measured)."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}}, version=1)
    assert fetch(state, "g", {}, 1) == ([("t", 0, 1, -1, "", 0)] if means_all else [], 0)


@pytest.mark.parametrize(("kafka_version", "error"), [("0.8.2", 3), ("0.9", 0)])
def test_unknown_topic_was_an_error_in_0_8_2(kafka_version: str, error: int) -> None:
    """OF-10, but for 0.8.2 (measured)."""
    assert fetch(new_state(kafka_version), "g", {"nope": [0], "t": [0]}, 1)[0] == [
        ("nope", 0, -1, -1, "", error),
        ("t", 0, -1, -1, "", 0),
    ]


@pytest.mark.parametrize("version", range(1, 10))
@OLD_AND_NEW
def test_empty_group_id_is_a_group_id(kafka_version: str, version: int) -> None:
    """OF-35."""
    state = new_state(kafka_version)
    commit(state, "", {"t": {0: 1}})
    assert fetch(state, "", {"t": [0]}, version) == ([("t", 0, 1, -1, "", 0)], 0)


@OLD_AND_NEW
def test_offsets_of_a_group_in_rebalance_are_returned_to_each_client(kafka_version: str) -> None:
    """OF-30, OF-36: a classic group does not look at who asks."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    group_with(state, "g", GroupState.COMPLETING_REBALANCE, [Member("m")])
    assert fetch(state, "g", {"t": [0]}, 5) == ([("t", 0, 1, -1, "", 0)], 0)
    assert fetch(state, "g", {"t": [0]}, 9, member_id="ghost", member_epoch=3) == ([("t", 0, 1, -1, "", 0)], 0)


@pytest.mark.parametrize("version", [7, 9])
def test_require_stable_changes_nothing_without_transactions(version: int) -> None:
    """OF-19, OF-25: no offset is pending, and a commit is in the table before its response is sent (OF-20)."""
    state = new_state()
    commit(state, "g", {"t": {0: 1}})
    topics = (OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)
    asked = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    groups = (OffsetFetchRequestGroup(group_id="g", topics=asked),)
    if version == 7:
        response = ask(state, OffsetFetchRequest(group_id="g", topics=topics, require_stable=True), version)
        found = response.topics
    else:
        found = ask(state, OffsetFetchRequest(groups=groups, require_stable=True), version).groups[0].topics
    assert rows(found) == [("t", 0, 1, -1, "", 0)]


# Topics and groups of a response.


@pytest.mark.parametrize(("kafka_version", "merges"), [("2.8", True), ("3.9", True), ("4.4", False), ("latest", False)])
def test_duplicates_and_topics_without_partitions(kafka_version: str, merges: bool) -> None:
    """OF-17: old brokers merge a request's topics in a map, new ones return them as they are named."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1, 1: 2}})
    asked = (
        OffsetFetchRequestTopic(name="t", partition_indexes=(0, 0)),
        OffsetFetchRequestTopic(name="u", partition_indexes=()),
        OffsetFetchRequestTopic(name="t", partition_indexes=(1,)),
    )
    topics = ask(state, OffsetFetchRequest(group_id="g", topics=asked), 5).topics
    shape = [(topic.name, [p.partition_index for p in topic.partitions]) for topic in topics]
    assert shape == ([("t", [0, 1])] if merges else [("t", [0, 0]), ("u", []), ("t", [1])])


@pytest.mark.parametrize("kafka_version", ["3.0", "3.9", "4.4"])
def test_a_request_without_groups_gets_an_empty_response(kafka_version: str) -> None:
    """Measured: 3.0.2 to 4.0.0 never respond, 4.4.0 responds like kproto."""
    assert ask(new_state(kafka_version), OffsetFetchRequest(groups=()), 8).groups == ()


@BATCHED
def test_each_group_of_a_request_gets_its_own_result(version: int) -> None:
    """OF-3, OF-31, OF-39: in the order of the request, a repeated group twice, each error in its group."""
    state = new_state(node_count=2)
    commit_partition = state.cluster.topics["__consumer_offsets"].partitions
    for partition in commit_partition:
        partition.leader = 1
    commit(state, "g", {"t": {0: 1}})
    commit_partition[42].leader = 2  # of g1
    asked = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    groups = tuple(OffsetFetchRequestGroup(group_id=group_id, topics=asked) for group_id in ("g", "g1", "unknown", "g"))
    response = ask(state, OffsetFetchRequest(groups=groups), version)
    responses = [(group.group_id, group.error_code, rows(group.topics)) for group in response.groups]
    assert responses == [
        ("g", 0, [("t", 0, 1, -1, "", 0)]),
        ("g1", 16, []),
        ("unknown", 0, [("t", 0, *MISSING)]),
        ("g", 0, [("t", 0, 1, -1, "", 0)]),
    ]


@pytest.mark.parametrize(("kafka_version", "merges"), [("3.0", True), ("3.4", True), ("3.5", False)])
def test_a_group_that_is_named_twice(kafka_version: str, merges: bool) -> None:
    """Up to 3.4 a hash map of groups has the last request for each (groups on 3.3.2, seed 1004)."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1, 1: 2}})
    asked = [(OffsetFetchRequestTopics(name="t", partition_indexes=(index,)),) for index in range(2)]
    groups = tuple(OffsetFetchRequestGroup(group_id="g", topics=topics) for topics in asked)
    response = ask(state, OffsetFetchRequest(groups=groups), 8)
    found = [(group.group_id, rows(group.topics)) for group in response.groups]
    both = [("g", [("t", 0, 1, -1, "", 0)]), ("g", [("t", 1, 2, -1, "", 0)])]
    assert found == (both[1:] if merges else both)


@BATCHED
def test_a_request_without_groups_gets_an_empty_response_in_each_version(version: int) -> None:
    """OF-39."""
    assert ask(new_state(), OffsetFetchRequest(groups=()), version).groups == ()


# Errors and their place (OF-31).


def test_group_error_stands_in_every_partition_up_to_v1() -> None:
    """OF-31."""
    state = new_state(node_count=2)
    elsewhere(state)
    expected = [("t", index, -1, -1, "", 16) for index in (0, 7)]
    assert fetch(state, "g", {"t": [0, 7]}, 1) == (expected, 0)


@pytest.mark.parametrize("version", range(2, 10))
@pytest.mark.parametrize("topics", [{"t": [0]}, None])
def test_group_error_stands_above_from_v2_on(version: int, topics: dict[str, list[int]] | None) -> None:
    """OF-31: and no topics with it."""
    state = new_state(node_count=2)
    elsewhere(state)
    assert fetch(state, "g", topics, version) == ([], 16)
    assert fetch(state, "g", topics, version, node_id=2)[1] == 0


@pytest.mark.parametrize("version", range(2, 10))
def test_no_offsets_topic_is_not_coordinator(version: int) -> None:
    """OF-31, BA-50."""
    assert fetch(new_state(with_offsets_topic=False), "g", {"t": [0]}, version) == ([], 16)


# Who asks (v9, OF-36).


def consumer_group(*, speaks_classic: bool = False) -> BrokerState:
    state = new_state("4.4")
    commit(state, "g", {"t": {0: 1}})
    add_consumer_group(state.coordinator, 0, "m", epoch=5, speaks_classic=speaks_classic)
    return state


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [(None, -1, 0), ("m", 5, 0), ("m", 4, 113), ("m", 6, 113), ("ghost", 5, 25), (None, 5, -1), ("", -1, 25)],
)
def test_consumer_group_checks_the_member_s_epoch(member_id: str | None, epoch: int, error: int) -> None:
    """OF-36."""
    found, group_error = fetch(consumer_group(), "g", {"t": [0]}, 9, member_id=member_id, member_epoch=epoch)
    assert (group_error, len(found)) == (error, 0 if error else 1)


def test_member_that_speaks_classic_hears_classic_errors() -> None:
    """OF-36."""
    state = consumer_group(speaks_classic=True)
    assert fetch(state, "g", {"t": [0]}, 9, member_id="m", member_epoch=4) == ([], 22)


# Topic ids (v10, OF-38).


def test_topics_are_named_by_id_from_v10_on() -> None:
    """OF-38: unknown ids have 100, and stand last."""
    state = new_state("4.4")
    commit(state, "g", {"t": {0: 1}, "u": {0: 2}})
    ids = [bytes(16), state.cluster.topics["t"].topic_id, b"\xff" * 16, state.cluster.topics["u"].topic_id]
    asked = tuple(OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(0, 9)) for topic_id in ids)
    groups = (OffsetFetchRequestGroup(group_id="g", topics=asked),)
    (response,) = ask(state, OffsetFetchRequest(groups=groups), 10).groups
    returned = [
        (topic.topic_id, [(p.partition_index, p.committed_offset, p.metadata, p.error_code) for p in topic.partitions])
        for topic in response.topics
    ]
    unknown = [(0, -1, "", 100), (9, -1, "", 100)]
    assert returned == [
        (ids[1], [(0, 1, "", 0), (9, -1, "", 0)]),
        (ids[3], [(0, 2, "", 0), (9, -1, "", 0)]),
        (ids[0], unknown),
        (ids[2], unknown),
    ]
    assert response.error_code == 0


def test_all_topics_come_with_their_ids() -> None:
    """OF-38."""
    state = new_state("4.4")
    commit(state, "g", {"t": {0: 1}, "u": {0: 2}})
    groups = (OffsetFetchRequestGroup(group_id="g", topics=None),)
    (response,) = ask(state, OffsetFetchRequest(groups=groups), 10).groups
    assert [topic.topic_id for topic in response.topics] == [state.cluster.topics[name].topic_id for name in ("t", "u")]


# v0 (OF-11, OC-20).


@pytest.mark.parametrize("kafka_version", ["0.10.2", "2.0", "2.8", "3.9-zookeeper", "latest"])
def test_v0_reads_its_own_store(kafka_version: str) -> None:
    """OF-11, OC-20: without metadata; what is missing is 3; neither store sees the other."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: (1, "m")}}, version=0)
    commit(state, "g", {"t": {1: (2, "m")}})
    assert fetch(state, "g", {"t": [0, 1], "nope": [0]}, 0) == (
        [("t", 0, 1, -1, "", 0), ("t", 1, -1, -1, "", 3), ("nope", 0, -1, -1, "", 3)],
        0,
    )
    assert fetch(state, "g", {"t": [0, 1]}, 1) == ([("t", 0, *MISSING), ("t", 1, 2, -1, "m", 0)], 0)


def test_v0_of_a_deleted_topic_is_missing() -> None:
    """OF-11."""
    state = new_state("2.0")
    commit(state, "g", {"t": {0: 1}}, version=0)
    state.cluster.delete_topic("t")
    assert fetch(state, "g", {"t": [0]}, 0) == ([("t", 0, -1, -1, "", 3)], 0)


def test_v0_is_unsupported_in_kraft() -> None:
    """OF-11."""
    assert fetch(new_state("3.9"), "g", {"t": [0]}, 0) == ([("t", 0, -1, -1, "", 35)], 0)


def test_v0_needs_no_coordinator() -> None:
    """OF-11: the store was ZooKeeper's, any broker reads it."""
    state = new_state("2.0", node_count=2)
    elsewhere(state)
    commit(state, "g", {"t": {0: 1}}, version=0)
    assert fetch(state, "g", {"t": [0]}, 0, node_id=2) == ([("t", 0, 1, -1, "", 0)], 0)
