"""ElectLeaders, with the responses of 2.8.2, 3.9.2 and 4.4.0 to the same requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.messages.k43_elect_leaders import ElectLeadersRequest, TopicPartitions
from kproto_server.cluster.topics import NO_LEADER, Topic
from tests.coordinator.broker_state import ask, new_state

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

NOT_NEEDED = (84, "Leader election not needed for topic partition.")
MISSING = (3, "The partition does not exist.")
Returned = list[tuple[str, list[tuple[int, int, "str | None"]]]]


def elect(
    state: BrokerState, *asked: tuple[str, tuple[int, ...]], election_type: int = 0, version: int = 2
) -> tuple[int, Returned]:
    partitions = tuple(TopicPartitions(topic=name, partitions=indexes) for name, indexes in asked)
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=partitions or None)
    response = ask(state, request, version)
    return response.error_code, [
        (result.topic, [(one.partition_id, one.error_code, one.error_message) for one in result.partition_result])
        for result in response.replica_election_results
    ]


def three_nodes(kafka_version: str = "latest") -> BrokerState:
    """Of topic "led" partition 0 has a leader that is not the preferred one, partition 1 the one that it should."""
    state = new_state(kafka_version, node_count=3)
    made = state.cluster.create_topic("led", assignments=[(0, [2, 3]), (1, [1, 3])])
    assert isinstance(made, Topic)
    state.cluster.stop_node(2)
    state.cluster.start_node(2)
    assert [partition.leader for partition in made.partitions] == [3, 1]
    return state


@pytest.mark.parametrize("election_type", [0, 1])
def test_partitions_named_in_the_request_are_returned_one_by_one(election_type: int) -> None:
    asked = [("t", (0, 5)), ("nope", (0,)), ("t", (1,))]
    kraft = elect(new_state("4.4"), *asked, election_type=election_type)
    zookeeper = elect(new_state("2.8"), *asked, election_type=election_type)
    assert kraft == (
        0,
        [
            ("t", [(0, *NOT_NEEDED), (5, 3, "No such partition as t-5")]),
            ("nope", [(0, 3, "No such topic as nope")]),
            ("t", [(1, *NOT_NEEDED)]),
        ],
    )
    assert zookeeper == (0, [("t", [(0, *NOT_NEEDED), (5, *MISSING), (1, *NOT_NEEDED)]), ("nope", [(0, *MISSING)])])


def test_an_unknown_kind_of_election_is_refused() -> None:
    returned = "Unknown election type 7"
    assert elect(new_state("4.4"), ("t", (0, 1)), election_type=7) == (
        42,
        [("t", [(0, 42, returned), (1, 42, returned)])],
    )
    assert elect(new_state("2.8"), ("t", (0,)), election_type=7) == (-1, [("t", [(0, -1, None)])])


def test_the_preferred_replica_leads_again() -> None:
    state = three_nodes()
    assert elect(state, ("led", (0, 1))) == (0, [("led", [(0, 0, None), (1, *NOT_NEEDED)])])
    assert state.cluster.topics["led"].partitions[0].leader == 2


@pytest.mark.parametrize(("kafka_version", "others"), [("latest", 3), ("2.8", 0)])
def test_of_all_partitions_those_with_a_new_leader_are_returned(kafka_version: str, others: int) -> None:
    """A KRaft cluster names the other topics too, without partitions: t, u and the offsets topic."""
    state = three_nodes(kafka_version)
    error, returned = elect(state)
    assert error == 0
    assert ("led", [(0, 0, None)]) in returned
    assert [partitions for name, partitions in returned if name != "led"] == [[]] * others


def test_a_preferred_replica_that_is_down_cannot_lead() -> None:
    state = three_nodes()
    state.cluster.stop_node(2)
    assert elect(state, ("led", (0,))) == (0, [("led", [(0, 80, "The preferred leader was not available.")])])


def test_an_unclean_election_takes_whoever_is_up() -> None:
    state = three_nodes()
    partition = state.cluster.topics["led"].partitions[0]
    for node_id in (2, 3):
        state.cluster.stop_node(node_id)
    unavailable = (83, "Eligible topic partition leaders are not available.")
    assert elect(state, ("led", (0,)), election_type=1) == (0, [("led", [(0, *unavailable)])])
    state.cluster.start_node(2)
    assert partition.leader == NO_LEADER
    assert elect(state, ("led", (0,)), election_type=1) == (0, [("led", [(0, 0, None)])])
    assert (partition.leader, partition.isr) == (2, [2])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_partitions_have_the_error_of_a_broker_that_is_not_the_controller(version: int) -> None:
    """Measured on 2.8.2. Without partitions in the request all of the cluster have the error."""
    state = new_state("2.8", node_count=2, with_offsets_topic=False)
    for asked in (None, (TopicPartitions(topic="t", partitions=(0,)), TopicPartitions(topic="nope", partitions=(5,)))):
        response = ask(state, ElectLeadersRequest(topic_partitions=asked), version, node_id=2)
        assert response.error_code == 0
        found = [
            (result.topic, one.partition_id, one.error_code, one.error_message)
            for result in response.replica_election_results
            for one in result.partition_result
        ]
        wanted = [("t", 0), ("nope", 5)] if asked else [("t", 0), ("t", 1), ("t", 2), ("u", 0)]
        assert found == [(*one, 41, None) for one in wanted]


def test_version_0_has_no_error_of_its_own() -> None:
    state = new_state("2.8")
    request = ElectLeadersRequest(election_type=7, topic_partitions=(TopicPartitions(topic="t", partitions=(0,)),))
    assert ask(state, request, 0).error_code == 0
    assert ask(state, request, 1).error_code == -1
