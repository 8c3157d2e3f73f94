"""Directories that real brokers left (fixtures/golden/logs): opened, written to, and left as such brokers take them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kproto.records.batches import read_batches
from kproto_server.storage.disk import RealDisk, read_all
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.log_writer import Durability
from tests.storage.log_data import TOPIC, append, files

GOLDEN = Path(__file__).parents[2] / "fixtures" / "golden" / "logs"
ENDS = {"2.0.1": 29, "2.1.1": 38, "4.4.0": 63}
"""Offsets that come next, as the names of the snapshots tell."""


@pytest.fixture(params=sorted(ENDS))
def release(request: pytest.FixtureRequest) -> str:
    made: str = request.param
    return made


@pytest.fixture
def directory(release: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / release, tmp_path / "data"))


def opened(directory: Path, durability: Durability = "os") -> LogDir:
    return LogDir(RealDisk(directory), durability=durability, opens=lambda topic: topic == TOPIC)


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_directory_of_kafkas_is_opened_and_written_to(directory: Path, release: str, durability: Durability) -> None:
    segment = directory / f"{TOPIC}-0" / f"{0:020}.log"
    before = segment.read_bytes()
    epoch = next(read_batches(before)).header.partition_leader_epoch  # type: ignore[union-attr]  # of magic 2
    log_dir = opened(directory, durability)
    assert log_dir.was_used_by_kafka
    assert log_dir.report == []
    log = log_dir.logs[TOPIC, 0]
    assert log.next_offset == ENDS[release]
    assert append(log_dir, 0, b"ours") == 0
    octets = read_all(log_dir.disk, log.active_path)
    assert octets[: len(before)] == before
    *_, ours = read_batches(octets)
    assert ours.base_offset == ENDS[release]  # type: ignore[union-attr]  # of magic 2
    assert ours.header.partition_leader_epoch == epoch  # type: ignore[union-attr]
    log_dir.close()
    again = opened(directory, durability)
    assert not again.was_used_by_kafka
    assert again.logs[TOPIC, 0].next_offset == ENDS[release] + 1
    again.close()


def test_nothing_is_left_that_would_mislead_a_broker(directory: Path) -> None:
    others = {name: octets for name, octets in files(directory).items() if not name.startswith(TOPIC)}
    opened(directory).close()
    left = files(directory)
    of_ours = {name.partition("/")[2]: octets for name, octets in left.items() if name.startswith(TOPIC)}
    assert of_ours[f"{0:020}.index"] == b""
    assert not any(name.endswith((".timeindex", ".snapshot")) for name in of_ours)
    assert ".kafka_cleanshutdown" not in left
    assert TOPIC.encode() not in left["recovery-point-offset-checkpoint"]
    assert b"__transaction_state 0" in left["recovery-point-offset-checkpoint"]
    mine = "recovery-point-offset-checkpoint"
    assert {name: left[name] for name in others if name not in (mine, ".kafka_cleanshutdown")} == {
        name: octets for name, octets in others.items() if name not in (mine, ".kafka_cleanshutdown")
    }
