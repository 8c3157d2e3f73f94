"""The settings and constants that limit classic groups."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kproto_server.configuration.settings import Settings

NEW_MEMBER_TIMEOUT_MS = 300_000
"""How long the first JoinGroup of a new member may be pending: fixed in Kafka (GP-5)."""


class GroupLimits(NamedTuple):
    """The settings that apply to all classic groups."""

    session_timeout_min_ms: int
    session_timeout_max_ms: int
    size_max: int
    initial_rebalance_delay_ms: int
    """How long the first rebalance waits for more members."""


@lru_cache(maxsize=16)
def group_limits_of(settings: Settings) -> GroupLimits:
    """Return the limits of these settings. Cached: a `Settings` never changes."""
    return GroupLimits(
        session_timeout_min_ms=settings.int("group.min.session.timeout.ms"),
        session_timeout_max_ms=settings.int("group.max.session.timeout.ms"),
        size_max=settings.int("group.max.size"),
        initial_rebalance_delay_ms=settings.int("group.initial.rebalance.delay.ms"),
    )
