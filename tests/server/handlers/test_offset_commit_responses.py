"""OffsetCommit: topic ids, the order of responses, and the store of v0 (OC-14, OC-16, OC-20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.coordinator.broker_state import ask, commit_request, new_state
from tests.coordinator.change_logs import RecordingLog
from tests.server.handlers.commits import TOO_LONG, codes, offsets_of, repeated

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

OLD_AND_NEW = pytest.mark.parametrize("kafka_version", ["2.0", "2.8", "3.9", "4.4", "latest"])


# Topic ids (v10).


def by_id(state: BrokerState, *topics: tuple[bytes, int]) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id="g",
        topics=tuple(
            OffsetCommitRequestTopic(
                topic_id=topic_id,
                partitions=(
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata=""),
                ),
            )
            for topic_id, index in topics
        ),
    )


def test_topics_are_named_by_id_from_v10_on() -> None:
    """OC-2: the response has the id and no name."""
    state = new_state("4.4")
    topic_id = state.cluster.topics["t"].topic_id
    (topic,) = ask(state, by_id(state, (topic_id, 0)), 10).topics
    assert (topic.name, topic.topic_id, [tuple(p)[:2] for p in topic.partitions]) == ("", topic_id, [(0, 0)])
    assert offsets_of(state, "g") == {"t": {0: 1}}


@pytest.mark.parametrize("topic_id", [bytes(16), b"\xff" * 16])
def test_unknown_topic_id(topic_id: bytes) -> None:
    """OC-10 row 4: 100, also for the id of zeros, and no group is made."""
    state = new_state("4.4")
    (topic,) = ask(state, by_id(state, (topic_id, 0)), 10).topics
    assert (topic.topic_id, topic.partitions[0].error_code) == (topic_id, 100)
    assert state.coordinator.group("g") is None


def test_unknown_partition_of_a_known_id() -> None:
    """OC-10 row 7."""
    state = new_state("4.4")
    (topic,) = ask(state, by_id(state, (state.cluster.topics["t"].topic_id, 9)), 10).topics
    assert topic.partitions[0].error_code == 3


def test_id_of_a_deleted_topic_is_unknown_although_its_name_is_back() -> None:
    """OC-10 row 4."""
    state = new_state("4.4")
    old_id = state.cluster.topics["t"].topic_id
    state.cluster.delete_topic("t")
    state.cluster.create_topic("t", partition_count=3)
    (topic,) = ask(state, by_id(state, (old_id, 0)), 10).topics
    assert topic.partitions[0].error_code == 100


# The order of partitions in a response (OC-14).


def test_refused_partitions_come_first_in_4_x() -> None:
    """OC-14: the others follow in the order of the request, in one entry for each topic."""
    state = new_state("4.4")
    request = commit_request("g", {"u": {0: 1}, "t": {1: 1, 9: 1, 0: 1}, "nope": {0: 1}})
    assert codes(ask(state, request, 5)) == [("t", 9, 3), ("t", 1, 0), ("t", 0, 0), ("nope", 0, 3), ("u", 0, 0)]


def test_without_refusals_the_response_is_in_the_order_of_the_request() -> None:
    """OC-14."""
    state = new_state("4.4")
    request = repeated(("u", 0, 1), ("t", 2, 1), ("t", 0, 1))
    response = ask(state, request, 5)
    assert codes(response) == [("u", 0, 0), ("t", 2, 0), ("t", 0, 0)]
    assert len(response.topics) == 3


@pytest.mark.parametrize(("kafka_version", "responses"), [("2.0", 1), ("3.9", 1), ("4.4", 2), ("latest", 2)])
def test_partition_named_twice(kafka_version: str, responses: int) -> None:
    """OC-14: the old coordinator returns it once, the new one twice; both keep the last offset."""
    state = new_state(kafka_version)
    state.coordinator.log = log = RecordingLog()
    assert codes(ask(state, repeated(("t", 0, 5), ("t", 0, 6)), 5)) == [("t", 0, 0)] * responses
    assert offsets_of(state, "g") == {"t": {0: 6}}
    written = [(partition, offset) for _, partition, offset in log.appended[0].offsets]
    assert written == ([(0, 6)] if responses == 1 else [(0, 5), (0, 6)])


@pytest.mark.parametrize(("kafka_version", "responses"), [("2.8", 1), ("3.4", 1), ("3.5", 2), ("3.9", 2), ("4.4", 2)])
def test_unknown_partition_named_twice(kafka_version: str, responses: int) -> None:
    """OC-14; measured on 2.8.2, 3.0.2, 3.4.1, 3.5.2, 3.9.2 and 4.4.0."""
    asked = repeated(("t", 9, 5), ("t", 9, 6), ("nope", 0, 1), ("nope", 0, 2))
    assert codes(ask(new_state(kafka_version), asked, 5)) == [*[("t", 9, 3)] * responses, *[("nope", 0, 3)] * responses]


@OLD_AND_NEW
def test_topic_without_partitions_is_left_out(kafka_version: str) -> None:
    """OC-16 has partitions in mind; measured on 2.8.2, 3.2.3, 3.9.2 and 4.4.0."""
    state = new_state(kafka_version)
    topics = (OffsetCommitRequestTopic(name="u", partitions=()), *commit_request("g", {"t": {0: 1}}).topics)
    assert [topic.name for topic in ask(state, OffsetCommitRequest(group_id="g", topics=topics), 5).topics] == ["t"]


# v0 (OC-20).


@pytest.mark.parametrize(
    ("kafka_version", "expected"), [("3.4", ["t"]), ("3.5", ["nope", "t"]), ("4.4", ["nope", "t"])]
)
def test_unknown_topic_without_partitions(kafka_version: str, expected: list[str]) -> None:
    """Measured on 2.8.2, 3.2.3, 3.9.2 and 4.4.0."""
    topics = (OffsetCommitRequestTopic(name="nope", partitions=()), *commit_request("g", {"t": {0: 1}}).topics)
    response = ask(new_state(kafka_version), OffsetCommitRequest(group_id="g", topics=topics), 5)
    assert [topic.name for topic in response.topics] == expected


@pytest.mark.parametrize("kafka_version", ["0.10.2", "2.0", "2.8", "3.9-zookeeper", "latest"])
def test_v0_has_a_store_of_its_own(kafka_version: str) -> None:
    """OC-20: no group, no coordinator, nothing that v1 and later could see."""
    state = new_state(kafka_version, with_offsets_topic=False)
    assert codes(ask(state, commit_request("g", {"t": {0: (1, "m")}}), 0)) == [("t", 0, 0)]
    assert state.coordinator.group("g") is None
    assert offsets_of(state, "g") == {}
    assert state.coordinator.v0_offsets.of_group("g")["t"][0].offset == 1


def test_v0_is_unsupported_in_kraft() -> None:
    """OC-20, OC-14: for partitions that exist, and for each as often as it is named."""
    state = new_state("3.9")
    request = repeated(("t", 0, 1), ("t", 0, 1), ("nope", 0, 1))
    assert sorted(codes(ask(state, request, 0))) == [("nope", 0, 3), ("t", 0, 35), ("t", 0, 35)]
    assert len(state.coordinator.v0_offsets) == 0


def test_v0_limits_metadata_too() -> None:
    """OC-20."""
    state = new_state("2.0")
    assert codes(ask(state, commit_request("g", {"t": {0: (1, TOO_LONG), 1: 1}}), 0)) == [("t", 0, 12), ("t", 1, 0)]
