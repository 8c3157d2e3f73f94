"""Metadata, FindCoordinator, ApiVersions and ListOffsets responses of eight releases (fixtures/golden/frames).

A broker is put together as its recording shows it, then asked what the real one was asked. Not asked: what needs an
authorizer ("denied" in the note).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.records.partitioning import partition_for
from kproto_server.cluster.cluster import Node
from tests.server.handlers.recorded import RELEASES, conversation
from tests.server.handlers.recorded_topics import differences, fresh_state, response_of

if TYPE_CHECKING:
    from kproto_server.state import BrokerState
    from tests.fixture_files import GoldenPair

SETTINGS = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}

FAR = "group that another broker coordinates"


def asked(api: str, release: str) -> list[GoldenPair]:
    return [pair for pair in conversation(api, release) if "denied" not in pair.note and "wholly" not in pair.note]


def recorded_broker(release: str) -> BrokerState:
    state = fresh_state(release, SETTINGS)
    state.cluster.create_topic("t", partition_count=3, replication_factor=1)
    state.cluster.create_topic("u", partition_count=1, replication_factor=1)
    return state


def _let_another_node_lead(state: BrokerState, pair: GoldenPair) -> None:
    """The cluster of two brokers that "far" groups were recorded on."""
    if pair.note != FAR:
        return
    cluster = state.cluster
    if len(cluster.nodes) == 1:
        cluster.add_node(Node(2, "127.0.0.1", 9093))
        cluster.delete_topic("__consumer_offsets")
        cluster.create_topic("__consumer_offsets", partition_count=50, replication_factor=2)
    response = response_of(pair)
    far = {"far-0": response.node_id, "far-1": response.node_id}
    partitions = cluster.topics["__consumer_offsets"].partitions
    for key, node_id in ({returned.key: returned.node_id for returned in response.coordinators} or far).items():
        partitions[partition_for(key, len(partitions))].leader = node_id


@pytest.mark.parametrize("release", RELEASES)
def test_metadata(release: str) -> None:
    """BA-30, BA-31, BA-36."""
    state = recorded_broker(release)
    assert state.cluster.ensure_offsets_topic(0)
    pairs = asked("Metadata", release)
    assert pairs
    assert [str(difference) for difference in differences(pairs, state)] == []


@pytest.mark.parametrize("release", RELEASES)
def test_find_coordinator(release: str) -> None:
    """BA-40 to BA-45."""
    pairs = asked("FindCoordinator", release)
    assert pairs
    found = differences(pairs, fresh_state(release, SETTINGS), _let_another_node_lead)
    # DEVIATION: no share coordinator; 3.9 promises one for ever.
    promised = "key type 2 (share, v6+)" if release == "3.9.2" else None
    left = (one for one in found if (one.pair.note, one.pair.api_version) != (promised, 6))
    assert [str(difference) for difference in left] == []


@pytest.mark.parametrize("release", RELEASES)
def test_api_versions(release: str) -> None:
    """BA-21."""
    pairs = asked("ApiVersions", release)
    assert pairs
    assert [str(difference) for difference in differences(pairs, fresh_state(release, SETTINGS))] == []


@pytest.mark.parametrize("release", RELEASES)
def test_list_offsets(release: str) -> None:
    """BA-80 to BA-83."""
    pairs = asked("ListOffsets", release)
    assert pairs
    assert [str(difference) for difference in differences(pairs, recorded_broker(release))] == []
