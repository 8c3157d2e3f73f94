"""What streams groups may have at most."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, Topology
from kproto_server.coordinator.streams_groups import topology
from kproto_server.coordinator.streams_groups.statuses import StatusCode
from kproto_server.testing import InMemoryBroker


def subtopology(number: int) -> Subtopology:
    return Subtopology(
        subtopology_id=str(number),
        source_topics=("t",),
        source_topic_regex=(),
        state_changelog_topics=(),
        repartition_sink_topics=(),
        repartition_source_topics=(),
        copartition_groups=(),
    )


@pytest.mark.parametrize(("most", "is_refused"), [(8, False), (7, True)])
def test_a_topology_with_too_many_tasks_is_refused(
    most: int, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise one small request, whose subtopologies read the same topic, would hold the broker for seconds."""
    monkeypatch.setattr(topology, "TASKS_MAX", most)
    at = InMemoryBroker(kafka_version="4.4", topics={"t": 4})
    assert at.state.cluster.ensure_offsets_topic(0)
    request = StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id="m" * 22,
        member_epoch=0,
        endpoint_information_epoch=0,
        instance_id=None,
        rack_id=None,
        rebalance_timeout_ms=1000,
        topology=Topology(epoch=0, subtopologies=(subtopology(0), subtopology(1))),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="p",
        user_endpoint=None,
        client_tags=(),
        task_offsets=None,
        task_end_offsets=None,
        shutdown_application=False,
    )
    response: Any = at.connect().ask(request, 0)
    assert response.error_code == 0
    refused = [one for one in response.status or () if one.status_code == StatusCode.INCORRECTLY_PARTITIONED_TOPICS]
    assert [one.status_detail for one in refused] == (
        ["kproto assigns at most 7 tasks of a group, and this topology has 8."] if is_refused else []
    )
