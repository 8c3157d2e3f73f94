"""Data directories of real brokers (fixtures/golden/logs): opened, written to, and left as brokers accept them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kproto.records.batches import read_batches
from kproto_server.storage.disk import RealDisk, read_all
from kproto_server.storage.kafka_files import KAFKA_CLEAN_SHUTDOWN, KAFKA_RECOVERY_POINTS
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.log_writer import Durability
from tests.storage.log_data import TOPIC, append, files

GOLDEN = Path(__file__).parents[2] / "fixtures" / "golden" / "logs"
ENDS = {"2.0.1": 29, "2.1.1": 38, "4.4.0": 63}
"""The next offset of each log, from the names of the snapshots."""


@pytest.fixture(params=sorted(ENDS))
def release(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


@pytest.fixture
def directory(release: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / release, tmp_path / "data"))


def open_directory(directory: Path, durability: Durability = "os") -> LogDir:
    return LogDir(RealDisk(directory), durability=durability, opens=lambda topic: topic == TOPIC)


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_directory_of_a_broker_is_opened_and_written_to(
    directory: Path, release: str, durability: Durability
) -> None:
    segment = directory / f"{TOPIC}-0" / f"{0:020}.log"
    before = segment.read_bytes()
    epoch = next(read_batches(before)).header.partition_leader_epoch  # type: ignore[union-attr]  # of magic 2
    log_dir = open_directory(directory, durability)
    assert log_dir.was_used_by_kafka
    assert log_dir.report == []
    log = log_dir.logs[TOPIC, 0]
    assert log.next_offset == ENDS[release]
    assert append(log_dir, 0, b"added") == 0
    data = read_all(log_dir.disk, log.active_path)
    assert data[: len(before)] == before
    *_, added = read_batches(data)
    assert added.base_offset == ENDS[release]  # type: ignore[union-attr]  # of magic 2
    assert added.header.partition_leader_epoch == epoch  # type: ignore[union-attr]
    log_dir.close()
    reopened = open_directory(directory, durability)
    assert not reopened.was_used_by_kafka
    assert reopened.logs[TOPIC, 0].next_offset == ENDS[release] + 1
    reopened.close()


def test_no_index_or_marker_is_left_that_a_broker_would_trust(directory: Path) -> None:
    others = {name: data for name, data in files(directory).items() if not name.startswith(TOPIC)}
    open_directory(directory).close()
    left = files(directory)
    in_partition = {name.partition("/")[2]: data for name, data in left.items() if name.startswith(TOPIC)}
    assert in_partition[f"{0:020}.index"] == b""
    assert not any(name.endswith((".timeindex", ".snapshot")) for name in in_partition)
    assert KAFKA_CLEAN_SHUTDOWN not in left
    assert TOPIC.encode() not in left[KAFKA_RECOVERY_POINTS]
    assert b"__transaction_state 0" in left[KAFKA_RECOVERY_POINTS]
    for name in others.keys() - {KAFKA_CLEAN_SHUTDOWN, KAFKA_RECOVERY_POINTS}:
        assert left[name] == others[name]
