"""Logs close their active segments when the process has no descriptors for all of them, and lose nothing by it."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from kproto_server.storage.disk import RealDisk
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.open_segments import OpenSegments
from tests.storage.log_data import TOPIC, append, batch_values, log_values, new_log_dir
from tests.storage.test_spare_descriptor import no_free_descriptor

PARTITIONS = 6


def open_logs(directory: Path) -> int:
    """Return how many segments this process has open below a directory."""
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    targets = [os.readlink(link) for link in links if os.path.islink(link)]
    return sum(target.startswith(str(directory)) and target.endswith(".log") for target in targets)


def write_all(log_dir: LogDir, value: bytes) -> list[int]:
    return [append(log_dir, partition, value) for partition in range(PARTITIONS)]


def check(log_dir: LogDir, *values: bytes) -> None:
    for partition in range(PARTITIONS):
        assert log_values(log_dir.disk, log_dir.logs[TOPIC, partition]) == [[value] for value in values]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_no_more_segments_are_open_than_the_maximum(durability: str, tmp_path: Path) -> None:
    log_dir = new_log_dir(RealDisk(tmp_path), PARTITIONS, durability=durability, open_segments=OpenSegments(2))
    for value in (b"1", b"2", b"3"):
        assert write_all(log_dir, value) == [0] * PARTITIONS
        assert open_logs(tmp_path) == 2
    check(log_dir, b"1", b"2", b"3")
    log_dir.close()
    assert open_logs(tmp_path) == 0


def test_a_log_that_has_no_descriptor_takes_that_of_another(tmp_path: Path) -> None:
    log_dir = new_log_dir(RealDisk(tmp_path), PARTITIONS, durability="os")
    assert append(log_dir, 0, b"1") == append(log_dir, 1, b"1") == 0
    with no_free_descriptor():
        assert [append(log_dir, partition, b"1") for partition in range(2, PARTITIONS)] == [0] * (PARTITIONS - 2)
        assert write_all(log_dir, b"2") == [0] * PARTITIONS
    check(log_dir, b"1", b"2")
    log_dir.close()


def test_a_reader_that_has_no_descriptor_takes_that_of_a_log(tmp_path: Path) -> None:
    log_dir = new_log_dir(RealDisk(tmp_path), PARTITIONS, durability="os")
    assert write_all(log_dir, b"1") == [0] * PARTITIONS
    log = log_dir.logs[TOPIC, 0]
    with no_free_descriptor():
        file = log.open_segment(log.active_path)
        (found,) = batch_values(file.read_at(0, file.size))
        file.close()
    assert found == [b"1"]
    log_dir.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_lower_limit_closes_segments_at_once(tmp_path: Path) -> None:
    """A start after a crash writes to logs before the limit is known, and connections could wait for their descriptors
    without end."""
    log_dir = new_log_dir(RealDisk(tmp_path), PARTITIONS, durability="os")
    assert write_all(log_dir, b"1") == [0] * PARTITIONS
    assert open_logs(tmp_path) == PARTITIONS
    log_dir.open_segments.limit(2)
    assert open_logs(tmp_path) == 2
    assert write_all(log_dir, b"2") == [0] * PARTITIONS
    check(log_dir, b"1", b"2")
    log_dir.close()


def test_a_log_without_descriptor_fails_if_no_other_has_one(tmp_path: Path) -> None:
    log_dir = new_log_dir(RealDisk(tmp_path), PARTITIONS, durability="os")
    with no_free_descriptor():
        assert append(log_dir, 0, b"refused") != 0
    assert write_all(log_dir, b"1") == [0] * PARTITIONS
    check(log_dir, b"1")
    log_dir.close()


def test_a_segment_with_the_rest_of_a_failed_write_stays_open() -> None:
    """Until the rest is truncated: behind a shorter batch it would be read as valid."""
    opened: list[str] = []

    class Log:
        def __init__(self, name: str, *, can_close: bool) -> None:
            self.name, self.can_close = name, can_close

        def close(self) -> None:
            opened.remove(self.name)
            segments.forget(self)

    segments = OpenSegments(2)
    for name, can_close in (("failed", False), ("second", True), ("third", True)):
        segments.open(Log(name, can_close=can_close), partial(opened.append, name))
    assert opened == ["failed", "third"]
