"""What the expiry job says of a log, the broker that writes it does: when its virtual clock gets there.

Method: groups of all kinds at one broker with a data directory, by requests over a socket. Then everybody is quiet but
for heartbeats. The directory is copied, and the job says what goes when; the clock moves on, and a look a second tells
what went when. The broker's own expiry is held to real ones by `tests/server/test_expiry_timelines.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kproto.spark import jobs
from kproto.spark.inputs import LogInput
from kproto_server.broker.broker import Broker
from kproto_server.configuration.data_directory import DataDirectory
from tests.server.test_expiry_timelines import SETTINGS, WITH_MEMBERS, BrokerTime, OurLine

COPIED_S = 41
END_S = 135
LOOK_S = 1
NAMES = ("simple", "living", "left", "connect", "back")
SWEEP_S = 1

Gone = dict[str, list[float]]
"""By group, when each offset went that went, in seconds from the beginning."""


class Group(OurLine):
    """One group of several at a broker."""

    def tick(self, time_s: float) -> None:
        """Send what heartbeats are due, and look."""
        self._pass_until(time_s)
        self._look()


class World:
    """A broker, and its groups by name."""

    def __init__(self, broker: Broker) -> None:
        self.time = BrokerTime(broker)
        self.zero_ms = broker.clock.now_ms()
        self.groups = {name: Group(broker.bootstrap_servers, name, self.time) for name in NAMES}
        for group in self.groups.values():
            group.set_up(in_transaction=False)

    def pass_until(self, time_s: int) -> None:
        while (now_s := round(self.time.now_s)) < time_s:
            self.time.pass_until(now_s + LOOK_S)
            for group in self.groups.values():
                group.tick(now_s + LOOK_S)

    def gone(self) -> Gone:
        found = {name: group.outcome().gone.values() for name, group in self.groups.items()}
        return {name: sorted(time_s for time_s in times if time_s is not None) for name, times in found.items()}


def live(world: World) -> None:
    groups = world.groups
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
    world.pass_until(10)
    groups["left"].leave()
    groups["back"].leave()
    world.pass_until(20)
    groups["simple"].commit("u")
    groups["back"].join("t")
    world.pass_until(30)
    groups["left"].commit("u")  # renews nothing, by nobody
    groups["back"].leave()
    world.pass_until(COPIED_S)


def foretold(spark: SparkSession, directory: Path, release: str, zero_ms: int) -> Gone:
    log = LogInput(spark, str(directory))
    steps = jobs.expiry(log.commits, log.group_metadata, retention_minutes=1, release=release).collect()
    found: Gone = {}
    for step in steps:
        times = found.setdefault(step["group_id"], [])
        if step["expires_ts"] is not None:
            times += [(round(step["expires_ts"].timestamp() * 1000) - zero_ms) / 1000] * step["offsets_lost"]
    return {name: sorted(time_s for time_s in times if time_s <= END_S) for name, times in found.items()}


def assert_as_foretold(seen: Gone, deadlines: Mapping[str, list[float]]) -> None:
    """Each offset goes at the first sweep at or after its deadline, and is seen to be gone at the next look."""
    assert {name: len(times) for name, times in seen.items()} == {name: len(of) for name, of in deadlines.items()}
    for name, times in seen.items():
        late = [gone_s - deadline_s for gone_s, deadline_s in zip(times, deadlines[name], strict=True)]
        assert all(0 <= late_s <= SWEEP_S + LOOK_S for late_s in late), (name, times, deadlines[name])


@pytest.mark.parametrize(("kafka_version", "kept"), [("4.4", 2), ("2.1", 3), ("2.0", 0)])
def test_offsets_go_when_the_job_says(spark: SparkSession, tmp_path: Path, kafka_version: str, kept: int) -> None:
    data = DataDirectory(str(tmp_path / "data"), durability="os")
    with Broker.running(
        kafka_version=kafka_version, clock="manual", settings=SETTINGS | WITH_MEMBERS, data=data
    ) as broker:
        world = World(broker)
        live(world)
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
        deadlines = foretold(spark, tmp_path / "copy", kafka_version, world.zero_ms)
        world.pass_until(END_S)
        seen = world.gone()
        offsets = sum(len(group.outcome().gone) for group in world.groups.values())
        for group in world.groups.values():
            group.close()
    assert offsets - sum(map(len, seen.values())) == kept
    assert_as_foretold(seen, deadlines)
