"""The settings of one share group: those of the broker, and the configs of the group instead of some of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.configuration.durations import duration_ms
from kproto_server.configuration.group_configs import BY_DURATION, DEAD_LETTER_TOPIC, EARLIEST, LATEST
from kproto_server.partition_log.lookup import record_at

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from kproto_server.configuration.settings import Settings
    from kproto_server.partition_log.decoding import DecodingBudget
    from kproto_server.partition_log.partition_data import PartitionData

READ_COMMITTED = "read_committed"


class GroupSettings(NamedTuple):
    """What decides how one share group reads."""

    lock_duration_ms: int
    delivery_count_max: int
    in_flight_max: int
    auto_offset_reset: str
    isolation_level: str
    renews_locks: bool
    dead_letter_topic: str
    """The topic that gets records which are rejected or delivered too often; empty: there is none."""
    copies_dead_records: bool
    """Whether it gets the records themselves, and not only where they were."""
    heartbeat_interval_ms: int
    session_timeout_ms: int
    assignment_interval_ms: int
    """How long targets stay at least."""
    size_max: int
    """How many members the group may have."""

    @property
    def reads_committed(self) -> bool:
        return self.isolation_level == READ_COMMITTED

    def reset_offset(
        self, data: PartitionData, now_ms: int, budget: DecodingBudget
    ) -> Generator[None, None, int | None]:
        """Return the first offset that a new share group reads in a partition; None: no record is new enough.

        Raises:
            DecodeError: records cannot be read whose times decide; MissingPackage and OSError as `record_at`.
        """
        if self.auto_offset_reset == EARLIEST:
            return data.start_offset
        if not self.auto_offset_reset.startswith(BY_DURATION):
            return data.next_offset
        since_ms = now_ms - (duration_ms(self.auto_offset_reset.removeprefix(BY_DURATION)) or 0)
        record = yield from record_at(data, since_ms, range(data.start_offset, data.next_offset), budget)
        return None if record is None else max(data.start_offset, record.offset)


@lru_cache(maxsize=16)
def broker_settings(settings: Settings) -> GroupSettings:
    """Return the settings of groups without configs. Cached: a `Settings` never changes."""
    return group_settings(settings, {})


def group_settings(settings: Settings, configs: Mapping[str, str]) -> GroupSettings:
    """Return the settings of a group with these configs of its own."""

    def number(config: str, setting: str) -> int:
        return int(configs[config]) if config in configs else settings.int(setting)

    return GroupSettings(
        lock_duration_ms=number("share.record.lock.duration.ms", "group.share.record.lock.duration.ms"),
        delivery_count_max=number("share.delivery.count.limit", "group.share.delivery.count.limit"),
        in_flight_max=number("share.partition.max.record.locks", "group.share.partition.max.record.locks"),
        auto_offset_reset=configs.get("share.auto.offset.reset", LATEST),
        isolation_level=configs.get("share.isolation.level", "read_uncommitted"),
        renews_locks=configs.get("share.renew.acknowledge.enable", "true") == "true",
        dead_letter_topic=configs.get(DEAD_LETTER_TOPIC, ""),
        copies_dead_records=configs.get("errors.deadletterqueue.copy.record.enable", "false") == "true",
        heartbeat_interval_ms=number("share.heartbeat.interval.ms", "group.share.heartbeat.interval.ms"),
        session_timeout_ms=number("share.session.timeout.ms", "group.share.session.timeout.ms"),
        assignment_interval_ms=number("share.assignment.interval.ms", "group.share.assignment.interval.ms"),
        size_max=settings.int("group.share.max.size"),
    )
