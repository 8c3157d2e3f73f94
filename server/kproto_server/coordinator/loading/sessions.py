"""Members of groups that a log brought back: each has its session timeout in full to be heard of (EX-17, LF-38)."""

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
"""Of members of KIP-848 groups: Kafka's default of group.consumer.session.timeout.ms."""


def start_sessions(coordinator: GroupCoordinator, groups: Iterable[Group], now_ms: int) -> None:
    """Wait for the members of groups that were just loaded."""
    for group in groups:
        if not group.members:
            continue
        if group.kind == "classic":
            timers.on_group_loaded(coordinator, group, now_ms)
        else:
            due_ms = now_ms + CONSUMER_SESSION_TIMEOUT_MS
            coordinator.clock.call_at(due_ms, partial(_remove_members, coordinator, group), in_background=True)


def _remove_members(coordinator: GroupCoordinator, group: Group) -> None:
    """Take the members out of a KIP-848 group. There is no way for them to be heard of, and nothing is written: the
    next start waits for them anew."""
    if coordinator.groups.get(group.group_id) is group:
        for member_id in list(group.members):
            group.remove_member(member_id)
        group.transition_to(GroupState.EMPTY, coordinator.clock.now_ms())
        group.subscribed_topics = frozenset()
