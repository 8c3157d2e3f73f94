"""Three brokers of which one, then two stop and start again: kproto returns the recorded responses at every step.

The responses have leaders, epochs, in-sync and offline replicas. The tests also compare which brokers respond to
ListOffsets, Fetch and OffsetForLeaderEpoch, the brokers that a response names, and what can be created meanwhile.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto_server.releases.kafka_version import KafkaVersion
from tests.fixture_files import golden_cluster
from tests.server.handlers.recorded_topics import difference, fresh_state, response_of, take_topic_ids


@pytest.mark.parametrize("release", ["2.8.2", "4.4.0"])
def test_brokers_stop_and_start(release: str) -> None:
    """BA-31, BA-35, BA-52, BA-74, BA-83, BA-90, BA-91."""
    state = fresh_state(release, {"delete.topic.enable": "true"}, node_count=3)
    found = []
    for step in golden_cluster(f"{release}-three-brokers"):
        if step.pair is None:
            (state.cluster.stop_node if step.action == "stop" else state.cluster.start_node)(step.node_id)
            continue
        for one in difference(step.pair, state, step.node_id):
            if _without_controller(one.ours, release) != _without_controller(one.theirs, release):
                found.append(f"node {step.node_id} {one}")
        take_topic_ids(state, response_of(step.pair))
    assert found == []


def _without_controller(response: Any, release: str) -> Any:
    """BA-31: a KRaft broker names any live broker as the controller."""
    if not KafkaVersion.named(release).is_kraft or "controller_id" not in response:
        return response
    assert response["controller_id"] in (1, 2, 3)
    return {**response, "controller_id": 0}
