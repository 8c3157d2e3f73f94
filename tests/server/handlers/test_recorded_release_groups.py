"""What a broker of each release line, 0.9 to 4.4, said to DescribeGroups, ListGroups, DeleteGroups and OffsetDelete,
said again by the release of that line in that mode: simple groups "g-1", "g-2" ..., topic "auto-0" of one partition.

Groups stand in any order: Kafka asks their partitions of the offsets topic one by one.
"""

from __future__ import annotations

import pytest

from kproto.headers import read_response
from kproto.messages.k16_list_groups import ListGroupsResponse
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import commit, new_state
from tests.fixture_files import GoldenPair, golden_releases
from tests.server.handlers.recorded import replay

NO_OFFSETS_TOPIC = "no offsets topic"


def brokers(api: str) -> list[str]:
    return sorted({broker for pair in golden_releases(api) for broker in pair.brokers})


def asked(api: str, broker: str, *, offsets_topic: bool = True) -> list[GoldenPair]:
    """The pairs of an API in the order in which the broker was asked, of the one or the other of its two set-ups."""
    pairs = [pair for pair in golden_releases(api) if broker in pair.brokers]
    chosen = [pair for pair in pairs if pair.note.startswith(NO_OFFSETS_TOPIC) is not offsets_topic]
    return sorted(chosen, key=lambda pair: pair.brokers[broker])


def recorded_state(broker: str, groups: list[str]) -> BrokerState:
    state = new_state(broker, topics={"auto-0": 1})
    for group_id in groups:
        commit(state, group_id, {"auto-0": {0: 1}}, version=2)
    return state


@pytest.mark.parametrize("broker", brokers("DescribeGroups"))
def test_descriptions(broker: str) -> None:
    """GP-40."""
    pairs = asked("DescribeGroups", broker)
    assert len(pairs) >= 3
    assert replay(broker, pairs, recorded_state(broker, ["g-2"]), {}, in_order=False) == []


@pytest.mark.parametrize("broker", [name for name in brokers("ListGroups") if KafkaVersion.named(name).at_least(2, 6)])
def test_filtered_lists(broker: str) -> None:
    """GP-42: the groups are those that the broker named itself."""
    pairs = asked("ListGroups", broker)
    (unfiltered,) = [pair for pair in pairs if pair.note == "states ['Empty']" and pair.api_version == 4]
    assert unfiltered.response is not None
    groups = read_response(unfiltered.response, ListGroupsResponse, 4)[1].groups
    state = recorded_state(broker, [group.group_id for group in groups])
    assert len(groups) >= 8
    assert replay(broker, pairs, state, {}, in_order=False) == []


@pytest.mark.parametrize("broker", brokers("DeleteGroups"))
def test_deletions_of_groups(broker: str) -> None:
    """EX-61."""
    pairs = asked("DeleteGroups", broker)
    assert len(pairs) >= 2
    state = recorded_state(broker, ["g-2", "g-3", "g-4", "g-5"])
    assert replay(broker, pairs, state, {}, in_order=False) == []


@pytest.mark.parametrize("broker", brokers("OffsetDelete"))
def test_deletions_of_offsets(broker: str) -> None:
    """EX-62."""
    pairs = asked("OffsetDelete", broker)
    assert len(pairs) == 3
    assert replay(broker, pairs, recorded_state(broker, ["g-7"]), {}) == []


@pytest.mark.parametrize("api", ["DescribeGroups", "ListGroups", "DeleteGroups", "OffsetDelete"])
def test_without_an_offsets_topic(api: str) -> None:
    """BA-50: 16, or nothing to list; before 0.11 the topic was made with fewer replicas than configured."""
    for broker in brokers(api):
        pairs = asked(api, broker, offsets_topic=False)
        state = new_state(broker, topics={"auto-0": 1}, with_offsets_topic=False)
        if (
            not state.cluster.behavior.enforces_offsets_replication_factor
            and state.coordinator.behavior.offsets_create_group
        ):
            state = recorded_state(broker, ["g"])
        assert pairs
        assert replay(broker, pairs, state, {}) == []
