"""Streams groups (KIP-1071): a member has a task in one role at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.simulator.invariants.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulator.history import History


def check_streams_groups(history: History) -> Iterator[Violation]:
    for one in history.of(StreamsGroupHeartbeatRequest):
        if one.response is None or one.response.error_code:
            continue
        roles = (one.response.active_tasks, one.response.standby_tasks, one.response.warmup_tasks)
        given = [(tasks.subtopology_id, index) for role in roles for tasks in role or () for index in tasks.partitions]
        if len(set(given)) < len(given):
            yield Violation(
                "a task has one role", f"{one.request.group_id}: {one.client} gets {given} at {one.received_ms} ms"
            )
