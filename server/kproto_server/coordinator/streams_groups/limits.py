"""The settings of streams groups, and those of one group that has its own (KIP-1071)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.configuration.settings import Settings
    from kproto_server.coordinator.coordinator import GroupCoordinator

NO_CONFIGS: Mapping[str, str] = {}
STANDBY_REPLICAS = "num.standby.replicas"
RACK_TAGS = "rack.aware.assignment.tags"
"""Configs of the assignor; a change of them raises the group epoch."""


class StreamsLimits(NamedTuple):
    """The settings that apply to streams groups."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    size_max: int
    standby_replicas: int
    initial_delay_ms: int
    assignment_interval_ms: int
    """The time between two target assignments, at least."""
    task_offset_interval_ms: int
    acceptable_recovery_lag: int
    rack_tags: tuple[str, ...]

    @property
    def assignment_configs(self) -> dict[str, str]:
        """The configs of the assignor, as the log has them."""
        configs = {STANDBY_REPLICAS: str(self.standby_replicas)}
        if self.rack_tags:
            configs[RACK_TAGS] = ",".join(self.rack_tags)
        return configs


def limits_of_group(coordinator: GroupCoordinator, group_id: str) -> StreamsLimits:
    """Return the limits of a group, with its own configs."""
    settings, given = coordinator.settings.current, coordinator.settings.groups.get(group_id)
    if not given:
        return streams_limits_of(settings)
    from kproto_server.configuration.group_configs import effective  # few groups have configs

    return _limits(settings, effective(settings, given))


@lru_cache(maxsize=16)
def streams_limits_of(settings: Settings) -> StreamsLimits:
    """Return the limits of these settings. Cached: a `Settings` never changes."""
    return _limits(settings, NO_CONFIGS)


def _limits(settings: Settings, configs: Mapping[str, str]) -> StreamsLimits:
    def number(name: str) -> int:
        config = f"streams.{name}"
        return int(configs[config]) if config in configs else settings.int(f"group.streams.{name}")

    tags = configs.get(f"streams.{RACK_TAGS}", settings.str(f"group.streams.{RACK_TAGS}"))
    return StreamsLimits(
        session_timeout_ms=number("session.timeout.ms"),
        heartbeat_interval_ms=number("heartbeat.interval.ms"),
        size_max=settings.int("group.streams.max.size"),
        standby_replicas=number(STANDBY_REPLICAS),
        initial_delay_ms=number("initial.rebalance.delay.ms"),
        assignment_interval_ms=number("assignment.interval.ms"),
        task_offset_interval_ms=number("task.offset.interval.ms"),
        acceptable_recovery_lag=number("acceptable.recovery.lag"),
        rack_tags=tuple([tag.strip() for tag in tags.split(",") if tag.strip()]),
    )
