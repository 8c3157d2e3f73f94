"""Commits of members with an older epoch, for partitions of tasks that they had then (KIP-1251)."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto_server.coordinator.streams_groups.group import StreamsGroup
from kproto_server.coordinator.streams_groups.leaving import restore_group
from kproto_server.testing.in_memory import virtual_clock
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport
from tests.streams_groups.members import Application

SETTINGS = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}


@pytest.mark.parametrize(("version", "is_restored"), [(9, False), (10, False), (10, True)])
def test_a_topic_has_its_tasks_by_name_and_by_id(version: int, is_restored: bool) -> None:
    """A real broker looks for the task by the name of the topic, which it knows in both versions.

    ``is_restored``: the group comes from a snapshot.
    """
    state = new_state("4.4", settings=SETTINGS, clock=virtual_clock())
    app = Application(InMemoryTransport(state), "4.4.0", "app", 1)
    app.create(partitions=2)
    if is_restored:
        restore_group(state.coordinator, app.full("g"), StreamsGroup.new_data(1), state.clock.now_ms())
    app.join("A")
    app.settle("A")
    before = app.members["A"].epoch
    app.join("B")
    app.settle("A", "B")
    assert app.members["A"].epoch > before
    [(_, kept)] = app.members["A"].owned.active.items()
    topic = OffsetCommitRequestTopic(
        name=app.full("t"),
        topic_id=state.cluster.topics[app.full("t")].topic_id,
        partitions=(OffsetCommitRequestPartition(partition_index=kept[0], committed_offset=7, committed_metadata=""),),
    )
    request = OffsetCommitRequest(
        group_id=app.full("g"), generation_id_or_member_epoch=before, member_id="A", topics=(topic,)
    )
    app.send("A", request, version)
    [response] = app.steps[-1].responses["A"]
    assert response["topics"][0]["partitions"][0]["error_code"] == ErrorCode.NONE
