"""After a restart members have a full session; then the group is Empty and its retention time begins (EX-17, LF-38)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.records.group_records import GroupMetadataKey
from kproto_server.clock import Clock, ClockMode
from kproto_server.coordinator.expiration_task import ExpirationTask
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.loading.load import PartitionLoad
from kproto_server.coordinator.loading.sessions import start_sessions
from tests.coordinator.broker_state import new_state
from tests.coordinator.consumer_group import add_consumer_group
from tests.coordinator.loading.group_values import MEMBER, consumer_group, group_value
from tests.coordinator.loading.logs import NOW, Log, stored

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

SECOND_MS = 1000


class Restart:
    """A broker that loads a log, with a manual clock."""

    def __init__(self, log: Log, start_ms: int, kafka_version: str = "latest") -> None:
        settings = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
        self.clock = Clock(start_ms, 0, ClockMode.parse("manual"))
        self.state: BrokerState = new_state(kafka_version, settings=settings, clock=self.clock)
        load = PartitionLoad(self.state.coordinator, [log.data], start_ms)
        load.run()
        assert load.failed is None
        start_sessions(self.state.coordinator, load.groups, start_ms)
        ExpirationTask(self.state.coordinator, self.clock).start()

    def at(self, time_s: float) -> tuple[str | None, bool]:
        """Return the group's state, and whether its offset exists, some seconds after `NOW`."""
        self.clock.advance(NOW + round(time_s * SECOND_MS) - self.clock.now_ms())
        group = self.state.coordinator.groups.get("g")
        return None if group is None else group.state.value, bool(self.state.coordinator.offsets.of_group("g"))


def stable_log() -> Log:
    """Return a log with a group that has a member, behind one that has none."""
    log = Log()
    log.records((GroupMetadataKey(group="before"), (group_value(current_state_timestamp=NOW), 3)))
    log.records((GroupMetadataKey(group="g"), (group_value(MEMBER, current_state_timestamp=NOW), 3)))
    log.commit("g", [("t", [(0, stored(1))])])
    return log


def test_t22_members_that_never_return() -> None:
    """T22: restart at 30, loaded at 35, session 10 s: Empty at 45, gone at 105."""
    restart = Restart(stable_log(), NOW + 35 * SECOND_MS)
    assert restart.at(44.9) == ("Stable", True)
    assert restart.at(45.1) == ("Empty", True)
    group = restart.state.coordinator.groups.get("g")
    assert group is not None
    assert (group.generation, group.protocol_type, group.protocol_name, group.leader_id) == (4, "consumer", None, None)
    assert restart.at(104.9) == ("Empty", True)
    assert restart.at(106.2) == (None, False)


def test_t21_downtime_counts_for_a_group_that_was_empty() -> None:
    """T21, EX-16: Empty at 5; down from 10 to 80; gone at the first run."""
    log = Log()
    log.records((GroupMetadataKey(group="g"), (group_value(current_state_timestamp=NOW + 5 * SECOND_MS), 3)))
    log.commit("g", [("t", [(0, stored(1, commit_timestamp_ms=NOW))])])
    restart = Restart(log, NOW + 80 * SECOND_MS)
    assert restart.at(81.1) == (None, False)


@pytest.mark.parametrize("version", [0, 1])
def test_without_a_state_timestamp_the_commit_counts(version: int) -> None:
    """EX-52: groups that 2.0 wrote."""
    log = Log()
    log.records((GroupMetadataKey(group="g"), (group_value(), version)))
    log.commit("g", [("t", [(0, stored(1, commit_timestamp_ms=NOW))])])
    restart = Restart(log, NOW + 30 * SECOND_MS)
    assert restart.at(59.9) == ("Empty", True)
    assert restart.at(61.1) == (None, False)


def test_sessions_of_a_consumer_group_expire() -> None:
    """EX-21 row 6: then no topic has a subscription; the commit counts, not the end of the sessions."""
    log = Log()
    consumer_group(log, "m", "n")
    log.commit("g", [("t", [(0, stored(1, commit_timestamp_ms=NOW))])])
    restart = Restart(log, NOW + 70 * SECOND_MS)
    session_s = 45
    assert restart.at(70 + session_s - 0.1) == ("Assigning", True)
    assert restart.at(70 + session_s + 1.1) == (None, False)


def test_the_end_of_sessions_does_not_affect_a_new_group_with_the_id() -> None:
    log = Log()
    consumer_group(log, "m")
    restart = Restart(log, NOW)
    restart.state.coordinator.groups.remove("g")
    again = add_consumer_group(restart.state.coordinator, NOW, "m")
    restart.at(60)
    assert again.state is GroupState.STABLE
