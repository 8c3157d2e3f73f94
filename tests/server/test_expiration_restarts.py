"""The timelines of offset expiration with a restart or an upgrade of the broker, on a manual clock.

A broker takes the first time of its clock from the machine; here the script sets the machine's time. The recording has
the time that a broker takes to serve a group again.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto_server.broker import assembly
from kproto_server.broker.broker import Broker
from kproto_server.configuration.data_directory import DataDirectory
from tests.coordinator.expiration_table import TABLE
from tests.coordinator.timeline import Outcome, Script, differences
from tests.fixture_files import expiry_recordings
from tests.network.raw_client import RawClient
from tests.oracle.expiry_timeline import WireTimeline
from tests.server.test_expiration_timelines import SETTINGS, TOLERANCE_S, WITH_MEMBERS
from tests.waiting import wait_until

GROUP = "g"

START_MS = 1_700_000_000_000


class Life:
    """The time of a broker with a downtime."""

    def __init__(
        self, kafka_version: str, data: Path, script: Script, loaded_s: float, patch: pytest.MonkeyPatch
    ) -> None:
        assert script.down is not None
        self._kafka_version = kafka_version
        # Without syncs: they take real time, in which the virtual clock would advance by seconds.
        self._data = DataDirectory(str(data), durability="os")
        self._down = script.down
        self._now_ms = START_MS
        clock_of_the_machine = SimpleNamespace(time=lambda: self._now_ms / 1000)
        patch.setattr(assembly, "time", clock_of_the_machine)
        self._breaks = [(self._down.stop_s, self.stop), (loaded_s, self._start_again)]
        self.broker: Broker | None = None
        self._start(kafka_version)

    def _start(self, kafka_version: str) -> None:
        settings = SETTINGS | WITH_MEMBERS
        self.broker = Broker(kafka_version=kafka_version, clock="manual", settings=settings, data=self._data)
        self.broker.start()

    def _start_again(self) -> None:
        """Start the broker, and wait until the group is loaded."""
        self._start(self._down.upgrade or self._kafka_version)
        assert self.broker is not None
        with RawClient(self.broker.bootstrap_servers) as client:
            wait_until(lambda: _is_loaded(client), "the group")

    def stop(self) -> None:
        if self.broker is not None:
            self.broker.stop()
            self.broker = None

    @property
    def now_s(self) -> float:
        return (self._now_ms - START_MS) / 1000

    def now_ms(self) -> int:
        return self._now_ms

    def pass_until(self, time_s: float) -> None:
        while self._breaks and self._breaks[0][0] <= time_s:
            break_s, act = self._breaks.pop(0)
            self._pass_until(break_s)
            act()
        self._pass_until(time_s)

    def _pass_until(self, time_s: float) -> None:
        until_ms = START_MS + round(time_s * 1000)
        if self.broker is not None:
            self.broker.clock.advance(milliseconds=until_ms - self._now_ms)
        self._now_ms = until_ms


def _is_loaded(client: RawClient) -> bool:
    (group,) = client.ask(DescribeGroupsRequest(groups=(GROUP,)), 0).groups
    return bool(group.error_code == 0)


class OurLine(WireTimeline):
    """The group at a broker that may be down."""

    STEP_S = 0.5

    def __init__(self, life: Life) -> None:
        self._life = life
        super().__init__("", GROUP, life)

    def _connect(self) -> RawClient:
        if self._life.broker is None:
            raise ConnectionRefusedError
        return RawClient(self._life.broker.bootstrap_servers)


def cases() -> list[Any]:
    return [
        pytest.param(TABLE[name], release, Outcome.recorded(fields), id=f"{name}-{release}")
        for release, timelines in expiry_recordings().items()
        for name, fields in timelines.items()
        if TABLE[name].down is not None
    ]


@pytest.mark.parametrize(("script", "release", "recorded"), cases())
def test_broker_matches_real_brokers_after_restarts(
    script: Script, release: str, recorded: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recorded.loaded is not None
    life = Life(release, tmp_path, script, recorded.loaded, monkeypatch)
    try:
        timeline = OurLine(life)
        timeline.set_up(in_transaction=False)
        seen = script.run(timeline)
        timeline.close()
    finally:
        life.stop()
    assert list(differences(recorded, seen, script.states, TOLERANCE_S)) == []
