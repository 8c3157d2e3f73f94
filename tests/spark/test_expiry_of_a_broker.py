"""A broker expires the offsets that the expiry job predicts from its log, at the predicted virtual time.

Method: groups of all kinds commit to one broker with a data directory, by requests over a socket. After that they send
heartbeats only. The directory is copied, and the job predicts deadlines from the copy. Then the virtual clock advances,
and the test fetches the offsets once a second. `tests/server/test_expiration_timelines.py` compares the broker's
expiration with real brokers.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kproto.spark import jobs
from kproto.spark.log_input import LogInput
from kproto_server.broker.broker import Broker
from kproto_server.configuration.data_directory import DataDirectory
from tests.server.test_expiration_timelines import SETTINGS, WITH_MEMBERS, BrokerTime, OurLine

COPIED_S = 41
END_S = 135
FETCH_S = 1
NAMES = ("simple", "living", "left", "connect", "back")
EXPIRATION_TASK_S = 1

Gone = dict[str, list[float]]
"""By group, the times at which offsets expired, in seconds from the beginning."""


class Group(OurLine):
    """One of several groups at a broker."""

    def tick(self, time_s: float) -> None:
        """Send the heartbeats up to a time, and fetch the offsets."""
        self._pass_until(time_s)
        self._poll()


class Scenario:
    """A broker and its groups by name."""

    def __init__(self, broker: Broker) -> None:
        self.time = BrokerTime(broker)
        self.zero_ms = broker.clock.now_ms()
        self.groups = {name: Group(broker.bootstrap_servers, name, self.time) for name in NAMES}
        for group in self.groups.values():
            group.set_up(in_transaction=False)

    def pass_until(self, time_s: int) -> None:
        while (now_s := round(self.time.now_s)) < time_s:
            self.time.pass_until(now_s + FETCH_S)
            for group in self.groups.values():
                group.tick(now_s + FETCH_S)

    def gone(self) -> Gone:
        found = {name: group.outcome().gone.values() for name, group in self.groups.items()}
        return {name: sorted(time_s for time_s in times if time_s is not None) for name, times in found.items()}


def run_groups(scenario: Scenario) -> None:
    groups = scenario.groups
    groups["simple"].commit()
    groups["simple"].commit(partition=1, ret=100_000)
    groups["living"].join("t")
    groups["living"].commit("t", member=True)
    groups["living"].commit("u", member=True)
    groups["left"].join("t")
    groups["left"].commit("t", member=True)
    groups["left"].commit("t", 1, ret=100_000, member=True)
    groups["connect"].join(protocol_type="connect")
    groups["connect"].commit(member=True)
    groups["back"].join("t")
    groups["back"].commit(member=True)
    scenario.pass_until(10)
    groups["left"].leave()
    groups["back"].leave()
    scenario.pass_until(20)
    groups["simple"].commit("u")
    groups["back"].join("t")
    scenario.pass_until(30)
    groups["left"].commit("u")  # from outside of the group: does not extend anything
    groups["back"].leave()
    scenario.pass_until(COPIED_S)


def predicted(session: SparkSession, directory: Path, kafka_version: str, zero_ms: int) -> Gone:
    log = LogInput(session, str(directory))
    steps = jobs.expiry(log.commits, log.group_metadata, retention_minutes=1, kafka_version=kafka_version).collect()
    found: Gone = {}
    for step in steps:
        times = found.setdefault(step["group_id"], [])
        if step["expires_ts"] is not None:
            times += [(round(step["expires_ts"].timestamp() * 1000) - zero_ms) / 1000] * step["offsets_lost"]
    return {name: sorted(time_s for time_s in times if time_s <= END_S) for name, times in found.items()}


def assert_as_predicted(seen: Gone, deadlines: Mapping[str, list[float]]) -> None:
    """Check that each offset expires at the first expiration task from its deadline on, seen by the next fetch."""
    assert {name: len(times) for name, times in seen.items()} == {name: len(of) for name, of in deadlines.items()}
    for name, times in seen.items():
        late = [gone_s - deadline_s for gone_s, deadline_s in zip(times, deadlines[name], strict=True)]
        assert all(0 <= late_s <= EXPIRATION_TASK_S + FETCH_S for late_s in late), (name, times, deadlines[name])


@pytest.mark.parametrize(("kafka_version", "kept"), [("4.4", 2), ("2.1", 3), ("2.0", 0)])
def test_offsets_expire_when_the_job_predicts(
    embedded_session: SparkSession, tmp_path: Path, kafka_version: str, kept: int
) -> None:
    data = DataDirectory(str(tmp_path / "data"), durability="os")
    with Broker.running(
        kafka_version=kafka_version, clock="manual", settings=SETTINGS | WITH_MEMBERS, data=data
    ) as broker:
        scenario = Scenario(broker)
        run_groups(scenario)
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
        deadlines = predicted(embedded_session, tmp_path / "copy", kafka_version, scenario.zero_ms)
        scenario.pass_until(END_S)
        seen = scenario.gone()
        offsets = sum(len(group.outcome().gone) for group in scenario.groups.values())
        for group in scenario.groups.values():
            group.close()
    assert offsets - sum(map(len, seen.values())) == kept
    assert_as_predicted(seen, deadlines)
