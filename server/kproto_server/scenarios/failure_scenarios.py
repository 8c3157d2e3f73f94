"""The failure scenarios: what happens before the consumer starts, and where it should start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.scenarios.scenario_topic import ScenarioTopic

RECORDS = 500
COMMITTED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureScenario:
    """A failure that happens to a group's committed offset while no consumer runs."""

    name: str
    description: str
    """A sentence for the user."""
    apply: Callable[[ScenarioTopic], None]
    expected_start: dict[int, int]
    """By partition, the first available record that the group has not read."""


def _out_of_range_low(topic: ScenarioTopic) -> None:
    topic.produce(RECORDS)
    topic.commit(COMMITTED)
    topic.delete_records(before=300)


def _out_of_range_high(topic: ScenarioTopic) -> None:
    topic.produce(RECORDS)
    topic.commit(900)


def _new_partition(topic: ScenarioTopic) -> None:
    topic.produce(COMMITTED)
    topic.commit(COMMITTED)
    topic.add_partition()
    topic.produce(50, partition=1)


def _deleted_offsets(topic: ScenarioTopic) -> None:
    topic.produce(RECORDS)
    topic.commit(COMMITTED)
    topic.delete_offset()


def _expired_offsets(topic: ScenarioTopic) -> None:
    topic.produce(RECORDS)
    topic.commit(COMMITTED)
    topic.expire_offsets()


def _truncated_log(topic: ScenarioTopic) -> None:
    topic.produce(RECORDS)
    topic.commit(RECORDS)
    topic.truncate(400)
    topic.produce(200)


def _recreated_topic(topic: ScenarioTopic) -> None:
    topic.produce(RECORDS)
    topic.commit(RECORDS)
    topic.recreate()
    topic.produce(200)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        FailureScenario(
            name="out-of-range-low",
            description="The group committed offset 100 of 500 records; then retention deleted all records before 300.",
            apply=_out_of_range_low,
            expected_start={0: 300},
        ),
        FailureScenario(
            name="out-of-range-high",
            description="The group committed offset 900; the log, restored from an old copy, ends at 500.",
            apply=_out_of_range_high,
            expected_start={0: 500},
        ),
        FailureScenario(
            name="new-partition",
            description="The group read all of partition 0; partition 1, with 50 records, was added while it was down.",
            apply=_new_partition,
            expected_start={0: 100, 1: 0},
        ),
        FailureScenario(
            name="deleted-offsets",
            description="The group committed offset 100 of 500 records; then its committed offset was deleted.",
            apply=_deleted_offsets,
            expected_start={0: 100},
        ),
        FailureScenario(
            name="expired-offsets",
            description="The group committed offset 100 of 500 records; after 8 days without a member, it expired.",
            apply=_expired_offsets,
            expected_start={0: 100},
        ),
        FailureScenario(
            name="truncated-log",
            description="The group read all 500 records; an unclean leader election truncated the log at 400, and 200 "
            "other records were written.",
            apply=_truncated_log,
            expected_start={0: 400},
        ),
        FailureScenario(
            name="recreated-topic",
            description="The group read all 500 records; the topic was deleted and created again, and 200 records were "
            "written.",
            apply=_recreated_topic,
            expected_start={0: 0},
        ),
    )
}
