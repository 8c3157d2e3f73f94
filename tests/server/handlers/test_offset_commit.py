"""OffsetCommit: what is stored, and which checks come first (OC-6 to OC-15, OC-40, OC-46)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto_server.coordinator.groups import GroupState, Member
from tests.coordinator.broker_state import NOW_MS, ask, commit, commit_request, group_with, new_state
from tests.server.handlers.commits import TOO_LONG, codes, offsets_of

if TYPE_CHECKING:
    from kproto_server.coordinator.offsets import OffsetAndMetadata
    from kproto_server.state import BrokerState

OLD_AND_NEW = pytest.mark.parametrize("kafka_version", ["2.0", "2.8", "3.9", "4.4", "latest"])


def one(state: BrokerState, group_id: str = "g") -> OffsetAndMetadata:
    return state.coordinator.offsets.of_group(group_id)["t"][0]


# What is stored.


@OLD_AND_NEW
def test_commit_makes_a_simple_group(kafka_version: str) -> None:
    """OC-21, EX-14: Empty, without a protocol type, generation 0."""
    state = new_state(kafka_version)
    response = ask(state, commit_request("g", {"t": {0: 42, 1: 7}, "u": {0: 9}}), 3)
    assert sorted(codes(response)) == [("t", 0, 0), ("t", 1, 0), ("u", 0, 0)]
    assert offsets_of(state, "g") == {"t": {0: 42, 1: 7}, "u": {0: 9}}
    group = state.coordinator.group("g")
    assert group is not None
    assert (group.state, group.protocol_type, group.generation) == (GroupState.EMPTY, None, 0)


def test_value_has_all_that_was_sent() -> None:
    """OC-40 (2.1 on), OC-46."""
    state = new_state("4.4")
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=42, committed_leader_epoch=5, committed_metadata="grüße"
    )
    topics = (OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
    ask(state, OffsetCommitRequest(group_id="g", topics=topics), 6)
    assert one(state) == (42, 5, "grüße", NOW_MS, None, state.cluster.topics["t"].topic_id)


def test_null_metadata_is_stored_as_empty() -> None:
    """OC-6, OC-32."""
    state = new_state()
    commit(state, "g", {"t": {0: (1, None)}})
    assert one(state).metadata == ""


@pytest.mark.parametrize("offset", [-1, -5, 0, 2**63 - 1])
def test_offset_is_not_validated(offset: int) -> None:
    """OC-15: neither negative ones nor those beyond the end of the log."""
    state = new_state()
    commit(state, "g", {"t": {0: offset}})
    assert one(state).offset == offset


@OLD_AND_NEW
def test_empty_group_id_is_a_group_id(kafka_version: str) -> None:
    """OC-9."""
    state = new_state(kafka_version)
    commit(state, "", {"t": {0: 1}})
    assert offsets_of(state, "") == {"t": {0: 1}}


def test_commit_of_a_member_does_not_touch_its_group() -> None:
    """OC-22; a simple commit into a group that had members keeps the protocol type (OC-27)."""
    state = new_state()
    group = group_with(state, "g", GroupState.STABLE, [Member("m")], generation=3)
    response = ask(state, commit_request("g", {"t": {0: 1}}, generation_id_or_member_epoch=3, member_id="m"), 8)
    assert codes(response) == [("t", 0, 0)]
    group.members.clear()
    group.transition_to(GroupState.EMPTY, NOW_MS)
    ask(state, commit_request("g", {"t": {1: 2}}), 8, now_ms=NOW_MS + 1)
    assert offsets_of(state, "g") == {"t": {0: 1, 1: 2}}
    assert (group.protocol_type, group.generation, group.state_timestamp_ms) == ("consumer", 3, NOW_MS)


# Retention (D2, OC-40).


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("retention_ms", [1, 0, -2, 2**63 - 1])
def test_retention_override_changes_nothing(version: int, retention_ms: int) -> None:
    """D2: the response and the stored offset equal those of a request without a retention time."""
    state = new_state("4.4")
    response = ask(state, commit_request("g", {"t": {0: 1}}, retention_time_ms=retention_ms), version)
    assert codes(response) == [("t", 0, 0)]
    assert (one(state).commit_timestamp_ms, one(state).expire_timestamp_ms) == (NOW_MS, None)


def test_retention_override_is_applied_if_configured() -> None:
    """OC-40, last column: `offsets.retention.override=honour` applies the retention time of the request."""
    state = new_state("4.4", settings={"offsets.retention.override": "honour"})
    ask(state, commit_request("g", {"t": {0: 1}}, retention_time_ms=5000), 3)
    assert one(state).expire_timestamp_ms == NOW_MS + 5000
    ask(state, commit_request("g", {"t": {0: 1}}), 3)
    assert one(state).expire_timestamp_ms is None


def test_offsets_carried_their_end_before_kip_211() -> None:
    """OC-40, second column: commit and end of each, by the broker's retention."""
    state = new_state("2.0", settings={"offsets.retention.minutes": "1"})
    ask(state, commit_request("g", {"t": {0: 1}}, retention_time_ms=5000), 3)
    assert one(state).expire_timestamp_ms == NOW_MS + 60_000


def test_timestamps_of_v1_are_each_partition_s_own() -> None:
    """OC-40: an explicit one is the time of the commit, -1 is now."""
    state = new_state("3.9")
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=1, commit_timestamp=timestamp, committed_metadata=""
        )
        for index, timestamp in enumerate((777, -1, 0))
    )
    topics = (OffsetCommitRequestTopic(name="t", partitions=partitions),)
    ask(state, OffsetCommitRequest(group_id="g", topics=topics), 1)
    stored = state.coordinator.offsets.of_group("g")["t"]
    assert [stored[index].commit_timestamp_ms for index in range(3)] == [777, NOW_MS, 0]


# The order of checks (OC-10).


@OLD_AND_NEW
def test_each_partition_has_its_own_error_code(kafka_version: str) -> None:
    """OC-12, OC-16: unknown topic, unknown partition, too much metadata, and success in one request."""
    state = new_state(kafka_version)
    request = commit_request("g", {"nope": {0: 1}, "t": {0: (1, TOO_LONG), 1: 2, 3: 3, -1: 4}})
    assert sorted(codes(ask(state, request, 5))) == [
        ("nope", 0, 3),
        ("t", -1, 3),
        ("t", 0, 12),
        ("t", 1, 0),
        ("t", 3, 3),
    ]
    assert offsets_of(state, "g") == {"t": {1: 2}}


@pytest.mark.parametrize(("kafka_version", "expected"), [("0.10.2", 0), ("1.1", 0), ("2.0", 3), ("4.4", 3)])
def test_partitions_are_looked_for_from_2_0_on(kafka_version: str, expected: int) -> None:
    """OC-10 row 7; measured on 1.1.1 and 2.0.1."""
    state = new_state(kafka_version)
    assert codes(ask(state, commit_request("g", {"t": {-1: 1, 7: 1}}), 2)) == [("t", -1, expected), ("t", 7, expected)]


def test_anything_was_stored_in_0_8_2() -> None:
    """Measured on 0.8.2.2: neither topic nor partition nor generation nor member is looked at; 15 without a topic to
    store it in."""
    state = new_state("0.8.2")
    request = commit_request("g", {"nope": {7: 1}}, generation_id_or_member_epoch=5, member_id="ghost")
    assert codes(ask(state, request, 1)) == [("nope", 7, 0)]
    assert offsets_of(state, "g") == {"nope": {7: 1}}
    assert codes(ask(new_state("0.8.2", with_offsets_topic=False), request, 1)) == [("nope", 7, 15)]


@pytest.mark.parametrize("kafka_version", ["3.0", "3.2"])
def test_refused_member_leaves_a_group_behind(kafka_version: str) -> None:
    """Measured on 3.2.3, where a member that a simple commit names has to exist (KAFKA-14201)."""
    state = new_state(kafka_version)
    assert codes(ask(state, commit_request("g", {"t": {0: 1}}, member_id="ghost"), 5)) == [("t", 0, 25)]
    assert state.coordinator.group("g") is not None
    assert offsets_of(state, "g") == {}


@OLD_AND_NEW
def test_membership_comes_before_metadata(kafka_version: str) -> None:
    """OC-11."""
    state = new_state(kafka_version)
    group_with(state, "g", GroupState.STABLE, [Member("m")])
    request = commit_request("g", {"t": {0: (1, TOO_LONG), 1: 2}}, generation_id_or_member_epoch=1, member_id="ghost")
    assert codes(ask(state, request, 5)) == [("t", 0, 25), ("t", 1, 25)]


@OLD_AND_NEW
def test_topics_come_before_the_coordinator(kafka_version: str) -> None:
    """OC-10 rows 6 to 13: an unknown topic is 3, whatever else is wrong; the rest hears of the coordinator."""
    state = new_state(kafka_version, node_count=2)
    for partition in state.cluster.topics["__consumer_offsets"].partitions:
        partition.leader = 2
    request = commit_request("g", {"nope": {0: 1}, "t": {0: (1, TOO_LONG), 9: 1}})
    assert sorted(codes(ask(state, request, 5, node_id=1))) == [("nope", 0, 3), ("t", 0, 16), ("t", 9, 3)]
    assert sorted(codes(ask(state, request, 5, node_id=2))) == [("nope", 0, 3), ("t", 0, 12), ("t", 9, 3)]


@OLD_AND_NEW
def test_only_unknown_topics_make_no_group(kafka_version: str) -> None:
    """OC-10 row 8: the coordinator is never asked, so that 16 and 22 cannot appear either."""
    state = new_state(kafka_version, with_offsets_topic=False)
    request = commit_request("g", {"nope": {0: 1}, "t": {9: 1}}, generation_id_or_member_epoch=5, member_id="m")
    assert sorted(codes(ask(state, request, 5))) == [("nope", 0, 3), ("t", 9, 3)]
    assert state.coordinator.group("g") is None


@OLD_AND_NEW
def test_empty_commit_makes_no_group(kafka_version: str) -> None:
    """OC-13."""
    state = new_state(kafka_version)
    assert ask(state, commit_request("g", {}), 5).topics == ()
    assert state.coordinator.group("g") is None


@OLD_AND_NEW
def test_refused_metadata_makes_a_group_all_the_same(kafka_version: str) -> None:
    """OC-10 rows 13 and 14: the group is found or made before its partitions are looked at."""
    state = new_state(kafka_version)
    assert codes(ask(state, commit_request("g", {"t": {0: (1, TOO_LONG)}}), 5)) == [("t", 0, 12)]
    assert state.coordinator.group("g") is not None
    assert offsets_of(state, "g") == {}


@OLD_AND_NEW
def test_offsets_topic_missing_is_not_coordinator(kafka_version: str) -> None:
    """OC-10 row 12, BA-50: measured on 2.1.1."""
    state = new_state(kafka_version, with_offsets_topic=False)
    assert codes(ask(state, commit_request("g", {"t": {0: 1, 1: 1}}), 3)) == [("t", 0, 16), ("t", 1, 16)]


def test_every_group_has_one_coordinator() -> None:
    """OC-10 row 12, LF-40: of three nodes exactly one takes the commit of a group, and it is the partition's leader."""
    state = new_state(node_count=3)
    for group_id in ("g", "g1", "test-group", "my-group", "grüße"):
        takers = []
        for node_id in (1, 2, 3):
            response = codes(ask(state, commit_request(group_id, {"t": {0: 1}}), 5, node_id=node_id))
            takers += [node_id] if response == [("t", 0, 0)] else []
            assert response[0][2] in (0, 16)
        leader = state.cluster.coordinator_of(group_id)
        assert leader is not None
        assert takers == [leader.node_id]


def test_coordinator_moves_with_its_partition() -> None:
    """OC-10 row 12, OS-33: nothing committed at the old leader is missing at the new one."""
    state = new_state(node_count=2)
    partition = state.cluster.topics["__consumer_offsets"].partitions[42]
    partition.leader = 1
    assert codes(ask(state, commit_request("g1", {"t": {0: 5}}), 5, node_id=1)) == [("t", 0, 0)]
    partition.leader = 2
    assert codes(ask(state, commit_request("g1", {"t": {1: 6}}), 5, node_id=1)) == [("t", 1, 16)]
    assert codes(ask(state, commit_request("g1", {"t": {1: 6}}), 5, node_id=2)) == [("t", 1, 0)]
    assert offsets_of(state, "g1") == {"t": {0: 5, 1: 6}}
