"""The sessions of the members of loaded groups: each has its full session timeout to be heard of (EX-17, LF-38)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.membership import timers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group


def start_sessions(coordinator: GroupCoordinator, groups: Iterable[Group], now_ms: int) -> None:
    """Start the sessions of the members of loaded groups."""
    for group in groups:
        if not group.members:
            continue
        if group.kind == "classic":
            timers.on_group_loaded(coordinator, group, now_ms)
        elif group.kind == "streams":
            from kproto_server.coordinator.streams_groups import timers as streams_timers

            streams_timers.on_group_loaded(coordinator, group, now_ms)
        else:
            from kproto_server.coordinator.consumer_groups.timers import on_group_loaded

            on_group_loaded(coordinator, group, now_ms)
