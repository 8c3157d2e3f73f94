"""An advance costs by what happens in it: runs of periodic tasks without an effect are skipped, with equal results.

Method: the same random history on two coordinators. The clock of one skips runs; that of the other one, a reference,
fires every run. All batches of the log, with their timestamps, must be the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from kproto_server.broker.broker import Broker
from kproto_server.clock import Clock, Timer
from kproto_server.configuration.data_directory import DataDirectory
from kproto_server.coordinator.change_log import Change, MemoryChangeLog
from tests.coordinator.coordinator_timeline import CoordinatorTimeline
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset, committed

SEEDS = range(12)
ACTIONS = ("commit", "commit", "commit", "commit_with_retention", "join", "fall_silent", "begin", "end")
VERSIONS = ["0.9", "1.1", "2.4", "latest"]


class ReferenceClock(Clock):
    """Fires every run of a periodic task."""

    def _pop_next(self, until_ms: float) -> Timer | None:
        return self._pop_broker(until_ms)


class KeptLog(MemoryChangeLog):
    """A log that adds each partition and batch to a list."""

    keeps = True

    def __init__(self, appended: list[tuple[int, bytes]]) -> None:
        self._appended = appended

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        self._appended.append((partition, batch))
        super().append(partition, change, batch, record_count)

    def write_now(self, partition: int, checked: bytes, record_count: int) -> int:
        self._appended.append((partition, checked))
        return 0


class LoggedTimeline(CoordinatorTimeline):
    """A timeline that keeps what is appended to the log."""

    def __init__(self, kafka_version: str, clock_class: type[Clock]) -> None:
        with pytest.MonkeyPatch.context() as patch:  # both sides have the same topic ids
            patch.setattr("os.urandom", random.Random(1).randbytes)  # noqa: S311
            super().__init__(kafka_version)
        self.clock.__class__ = clock_class
        self.appended: list[tuple[int, bytes]] = []
        self.state.coordinator.log = KeptLog(self.appended)

    def act(self, action: str, number: int) -> None:
        match action:
            case "commit":
                self.commit("t", number % 3)
            case "commit_with_retention":
                self.commit("u", ret=1000 * (number % 90))
            case "join" if not self.group_has_members():
                self.join("t")
            case "fall_silent" if self.group_has_members():
                self.leave()
            case "begin":
                self.commit_in_transaction(number % 3)
            case "end":
                self.end_transaction(committed=bool(number % 2))

    def group_has_members(self) -> bool:
        group = self.state.coordinator.groups.get("g")
        return group is not None and bool(group.members)


def random_history(seed: int) -> Iterator[tuple[str, int, int]]:
    """Yield actions with a number, and milliseconds that pass after each."""
    chosen = random.Random(seed)  # noqa: S311
    for _ in range(40):
        pass_ms = chosen.choice((0, 1, 400, 1000, 20_000, 59_999, 60_000, 61_000, 300_000))
        yield chosen.choice(ACTIONS), chosen.randrange(1000), pass_ms


@pytest.mark.parametrize("kafka_version", VERSIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_skipped_runs_have_no_effect(seed: int, kafka_version: str) -> None:
    ours, reference = (LoggedTimeline(kafka_version, clock_class) for clock_class in (Clock, ReferenceClock))
    for action, number, pass_ms in random_history(seed):
        for timeline in (ours, reference):
            with suppress(AssertionError):  # a commit that the group's state refuses, on both sides
                timeline.act(action, number)
            timeline.clock.advance(pass_ms)
        assert ours.clock.now_ms() == reference.clock.now_ms()
        assert ours.appended == reference.appended
        assert ours.committed() == reference.committed()
        assert ours.group_state() is reference.group_state()
    assert ours.appended
    assert ours.clock.timers_set < reference.clock.timers_set


@pytest.mark.parametrize("durability", [None, "os", "fsync"])
def test_ten_years_cost_what_one_year_costs(durability: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """`timers_set` is the number of steps: each run of a task sets the next timer."""

    def steps(days: int) -> int:
        data = None
        if durability is not None:
            data = DataDirectory(str(tmp_path_factory.mktemp("data")), durability=durability)
        with Broker.running(clock="manual", data=data) as broker, RawClient(broker.bootstrap_servers) as client:
            for group_id in ("g", "h"):
                assert commit_offset(client, group_id) == 0
            before: int = broker._call(lambda server: server.loop.clock.timers_set)
            broker.clock.advance(days=days)
            assert committed(client, "g") == committed(client, "h") == -1
            return broker._call(lambda server: server.loop.clock.timers_set) - before

    assert steps(3650) == steps(365) < 20


def test_groups_that_cannot_expire_cost_nothing_either() -> None:
    """The node of their partition is stopped: the group waits for an event, and not for time."""
    settings = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
    with Broker.running(clock="manual", brokers=2, settings=settings) as broker:
        first, second = broker.bootstrap_servers.split(",")
        with RawClient(first) as one, RawClient(second) as two:
            owner = 1 if commit_offset(one) == 0 else 2
            if owner == 2:
                assert commit_offset(two) == 0
            broker.stop_node(owner)
            before: int = broker._call(lambda server: server.loop.clock.timers_set)
            broker.clock.advance(days=3650)
            assert broker._call(lambda server: server.loop.clock.timers_set) - before < 20
            broker.start_node(owner)
            broker.clock.advance(minutes=10)
            with RawClient(broker.bootstrap_servers.split(",")[owner - 1]) as again:
                assert committed(again) == -1
