"""The sessions of the members of loaded groups: each has its full session timeout to be heard of (EX-17, LF-38)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.membership import timers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group

CONSUMER_SESSION_TIMEOUT_MS = 45_000
"""The session timeout in consumer groups: Kafka's default of `group.consumer.session.timeout.ms`."""


def start_sessions(coordinator: GroupCoordinator, groups: Iterable[Group], now_ms: int) -> None:
    """Start the sessions of the members of loaded groups."""
    for group in groups:
        if not group.members:
            continue
        if group.kind == "classic":
            timers.on_group_loaded(coordinator, group, now_ms)
        else:
            deadline_ms = now_ms + CONSUMER_SESSION_TIMEOUT_MS
            coordinator.clock.call_at(deadline_ms, partial(_remove_members, coordinator, group), in_background=True)


def _remove_members(coordinator: GroupCoordinator, group: Group) -> None:
    """Remove the members of a consumer group: kproto has no ConsumerGroupHeartbeat, by which they could be heard of.

    Nothing is written, so that the next restart starts their sessions again.
    """
    if coordinator.groups.get(group.group_id) is group:
        for member_id in list(group.members):
            group.remove_member(member_id)
        group.transition_to(GroupState.EMPTY, coordinator.clock.now_ms())
        group.subscribed_topics = frozenset()
