"""The settings of consumer groups, and those of one group that has its own (KIP-848)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kproto_server.configuration.settings import Settings
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group

TOPICS_REFRESH_MS = 300_000
"""How long the hash of the subscribed topics is valid at most: fixed in Kafka."""


class ConsumerLimits(NamedTuple):
    """The settings that apply to consumer groups."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    size_max: int
    assignment_interval_ms: int
    """The time between two target assignments, at least."""
    assignors: tuple[str, ...]
    """The first one is the default."""
    upgrades: bool
    """Whether a group of classic members becomes a consumer group when a member of KIP-848 joins."""
    regex_refresh_ms: int
    """How often regular expressions are matched again, at least."""
    downgrades: bool
    """Whether a consumer group becomes a classic group when its last member of KIP-848 leaves."""


@lru_cache(maxsize=16)
def consumer_limits_of(settings: Settings) -> ConsumerLimits:
    """Return the limits of these settings. Cached: a `Settings` never changes."""
    policy = settings.str("group.consumer.migration.policy")
    return ConsumerLimits(
        session_timeout_ms=settings.int("group.consumer.session.timeout.ms"),
        heartbeat_interval_ms=settings.int("group.consumer.heartbeat.interval.ms"),
        size_max=settings.int("group.consumer.max.size"),
        assignment_interval_ms=settings.int("group.consumer.assignment.interval.ms"),
        assignors=tuple([_short_name(name) for name in settings.str("group.consumer.assignors").split(",")]),
        upgrades=policy in ("bidirectional", "upgrade"),
        regex_refresh_ms=settings.int("group.consumer.regex.refresh.interval.ms"),
        downgrades=policy in ("bidirectional", "downgrade"),
    )


def limits_of_group(coordinator: GroupCoordinator, group_id: str) -> ConsumerLimits:
    """Return the limits of a group, with its own configs."""
    limits = consumer_limits_of(coordinator.settings.current)
    given = coordinator.settings.groups.get(group_id)
    if not given:
        return limits
    from kproto_server.configuration.group_configs import effective  # few groups have configs

    configs = effective(coordinator.settings.current, given)
    return limits._replace(
        session_timeout_ms=int(configs.get("consumer.session.timeout.ms", limits.session_timeout_ms)),
        assignment_interval_ms=int(configs.get("consumer.assignment.interval.ms", limits.assignment_interval_ms)),
        heartbeat_interval_ms=int(configs.get("consumer.heartbeat.interval.ms", limits.heartbeat_interval_ms)),
    )


def _short_name(assignor: str) -> str:
    """Return the name of an assignor, which the setting may give as the name of Kafka's class."""
    name = assignor.strip().rpartition(".")[2]
    return {"UniformAssignor": "uniform", "RangeAssignor": "range"}.get(name, name)


def is_full(
    coordinator: GroupCoordinator, group: Group, limits: ConsumerLimits, member_id: str, instance_id: str | None
) -> bool:
    """Return whether a group has no room for a member; it has for its own, and from 4.4 on for static ones in place of
    others (GroupMetadataManager.throwIfConsumerGroupIsFull)."""
    if instance_id in group.static_members and coordinator.behavior.full_group_replaces_static_members:
        return False
    return len(group.members) >= limits.size_max and member_id not in group.members
