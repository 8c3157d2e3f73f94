"""The assignments in requests and responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kproto.records.consumer_protocol import read_assignment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.simulator.history import Exchange

JOIN_EPOCH = 0
EPOCH_HEARTBEATS = (ConsumerGroupHeartbeatRequest, StreamsGroupHeartbeatRequest)
"""Heartbeats of the groups whose members commit offsets with their epochs."""


def assigned_partitions(synced: Exchange) -> tuple[int, ...]:
    """Return the partitions that a SyncGroup has got."""
    data = synced.response.assignment
    if not data:
        return ()
    return tuple(index for topic in read_assignment(data)[1].assigned_partitions for index in topic.partitions)


def kept_partitions(request: Any) -> set[int] | None:
    """Return the partitions that a heartbeat says the member has; None: it does not say.

    A task of a streams group counts as the partition that it reads.
    """
    is_streams = isinstance(request, StreamsGroupHeartbeatRequest)
    return _partitions(request.active_tasks if is_streams else request.topic_partitions)


def given_partitions(one: Exchange) -> set[int] | None:
    """Return the partitions in the response to a heartbeat; None: those of the last response."""
    if isinstance(one.request, StreamsGroupHeartbeatRequest):
        return _partitions(one.response.active_tasks)
    assignment = one.response.assignment
    return None if assignment is None else _partitions(assignment.topic_partitions)


def _partitions(topics: Iterable[Any] | None) -> set[int] | None:
    return None if topics is None else {index for topic in topics for index in topic.partitions}
