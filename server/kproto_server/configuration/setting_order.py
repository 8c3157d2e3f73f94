"""Broker settings of groups that must be in order: a value between its limits, heartbeats within a session.

Source:
    Starts of 3.9.2 and 4.4.0, which such settings end. Up to 3.9 a heartbeat interval may be as long as a session, or
    longer (3.7.2, 3.8.1 and 3.9.2 start with 6000 and 5000 ms; 4.0.2 and 4.4.0 refuse 5000 and 5000).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.configuration.setting_table import SETTINGS, SettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto_server.releases.kafka_version import KafkaVersion

LIMITED: dict[str, tuple[str, ...]] = {
    "consumer": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
    "share": (
        "heartbeat.interval.ms",
        "session.timeout.ms",
        "assignment.interval.ms",
        "record.lock.duration.ms",
        "delivery.count.limit",
        "partition.max.record.locks",
    ),
    "streams": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
}
"""The settings with limits, by kind of group."""


def check_order(number: Callable[[str], int], kafka_version: KafkaVersion) -> None:
    """Refuse settings of groups that contradict each other; ``number`` returns the value of one.

    Raises:
        SettingError: a setting is beyond its limit; the message names both.
    """
    for lower, higher, is_strict in ordered_pairs():
        if is_strict and not kafka_version.at_least(4, 0):
            continue
        if not all(kafka_version.at_least(*SETTINGS[name].since) for name in (lower, higher)):
            continue
        low, high = number(lower), number(higher)
        if low > high or (is_strict and low == high):
            relation = "less than" if is_strict else "at most"
            raise SettingError(f"{lower} ({low}) must be {relation} {higher} ({high}): change one of them")


def ordered_pairs() -> Iterator[tuple[str, str, bool]]:
    """Yield the lower setting, the higher one, and whether they must differ."""
    for kind, names in LIMITED.items():
        for name in names:
            low, value, high = f"group.{kind}.min.{name}", f"group.{kind}.{name}", f"group.{kind}.max.{name}"
            yield low, high, False
            yield low, value, False
            yield value, high, False
        yield f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms", True
    yield "group.share.max.size", "group.share.max.share.sessions", False
    yield "group.streams.num.standby.replicas", "group.streams.max.standby.replicas", False
    yield "group.streams.min.task.offset.interval.ms", "group.streams.task.offset.interval.ms", False
