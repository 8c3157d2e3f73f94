"""A data directory on a real file system: written, closed or killed, and opened again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kproto_server.inspect.directory import find_logs
from kproto_server.inspect.verify import verify
from kproto_server.storage.disk import RealDisk
from kproto_server.storage.errors import DirectoryInUse
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.log_writer import Durability
from tests.storage.log_data import TOPIC, append, batch, files, log_values, new_log_dir, settle

DURABILITIES: tuple[Durability, ...] = ("os", "fsync")
WAL_SIZE = 256 << 10


@pytest.fixture(params=DURABILITIES)
def durability(request: pytest.FixtureRequest) -> Durability:
    made: Durability = request.param
    return made


def opened(path: Path, durability: Durability, **options: object) -> LogDir:
    return LogDir(RealDisk(path), durability=durability, wal_size_bytes=WAL_SIZE, **options)  # type: ignore[arg-type]  # whatever the test says


def made(path: Path, durability: Durability, partitions: int = 3, **options: object) -> LogDir:
    return new_log_dir(RealDisk(path), partitions, durability=durability, wal_size_bytes=WAL_SIZE, **options)


def contents(log_dir: LogDir) -> dict[int, list[list[bytes | None]]]:
    return {partition: log_values(log_dir.disk, log) for (_, partition), log in log_dir.logs.items()}


@pytest.mark.parametrize("ending", ["closed", "killed"])
def test_what_was_acknowledged_is_there_again(tmp_path: Path, durability: Durability, ending: str) -> None:
    log_dir = made(tmp_path, durability)
    for number in range(20):
        assert append(log_dir, number % 3, b"first %d" % number, b"second %d" % number) == 0
    before = contents(log_dir)
    assert sum(map(len, before.values())) == 20
    if ending == "closed":
        log_dir.close()
    again = opened(tmp_path, durability)
    assert contents(again) == before
    assert again.report == []
    assert [topic.name for topic in again.topics] == [TOPIC]
    assert append(again, 0, b"more") == 0
    again.close()


def test_opening_twice_changes_nothing(tmp_path: Path, durability: Durability) -> None:
    log_dir = made(tmp_path, durability)
    for number in range(9):
        assert append(log_dir, number % 3, b"%d" % number) == 0
    log_dir.close()
    opened(tmp_path, durability).close()
    first = files(tmp_path)
    opened(tmp_path, durability).close()
    assert files(tmp_path) == first


def test_batches_of_one_round_keep_their_order(tmp_path: Path, durability: Durability) -> None:
    log_dir = made(tmp_path, durability)
    for number in range(10):
        assert log_dir.writer.append(log_dir.logs[TOPIC, number % 2], *batch(b"%d" % number), number) == 0
    begun = log_dir.writer.begin()
    assert begun is not None
    assert log_dir.writer.begin() is None, "one round at a time"
    begun.sync()
    assert log_dir.writer.finish(begun) == [(number, 0) for number in range(10)]
    assert contents(log_dir)[1] == [[b"%d" % number] for number in range(1, 10, 2)]


def test_segments_roll_by_their_size_and_are_named_by_their_first_offset(
    tmp_path: Path, durability: Durability
) -> None:
    log_dir = made(tmp_path, durability, 1, segment_bytes=300)
    for number in range(12):
        assert append(log_dir, 0, b"a" * 30, b"%d" % number) == 0
    segments = log_dir.logs[TOPIC, 0].segments()
    assert len(segments) > 3
    assert all(segment.size <= 300 for segment in segments)
    assert [Path(segment.path).name for segment in segments] == [f"{one.base_offset:020}.log" for one in segments]
    before = contents(log_dir)
    again = opened(tmp_path, durability, segment_bytes=300)
    assert contents(again) == before
    again.close()
    checked = verify(find_logs(str(tmp_path)), note=lambda text: None, read=lambda size: None, partitions=1)
    assert checked.records == 24


def test_a_batch_above_the_limit_is_refused(tmp_path: Path, durability: Durability) -> None:
    log_dir = made(tmp_path, durability, batch_size_max_bytes=200)
    log = log_dir.logs[TOPIC, 0]
    assert log_dir.writer.append(log, *batch(b"x" * 200), None) == 10
    assert log_dir.writer.begin() is None
    assert log.next_offset == 0


def test_removed_logs_are_not_brought_back_by_the_journal(tmp_path: Path, durability: Durability) -> None:
    log_dir = made(tmp_path, durability)
    assert append(log_dir, 0, b"of the first") == 0
    log_dir.remove_logs(TOPIC)
    log_dir.create_logs(TOPIC, 3)
    killed = opened(tmp_path, durability)
    assert contents(killed) == {0: [], 1: [], 2: []}
    assert killed.report == []


def test_another_process_is_kept_out(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk.lock()
    script = (
        "import sys; from kproto_server.storage.disk import RealDisk; "
        "from kproto_server.storage.errors import DirectoryInUse\n"
        "try: RealDisk(sys.argv[1]).lock()\n"
        "except DirectoryInUse as error: print(error)\n"
    )
    run = [sys.executable, "-c", script, str(tmp_path)]
    told = subprocess.run(run, capture_output=True, text=True, check=True)
    assert told.stdout == f"{tmp_path} is in use by another broker; stop it, or use another directory\n"
    with pytest.raises(DirectoryInUse):
        RealDisk(tmp_path).lock()
    disk.unlock()
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == ""
    RealDisk(tmp_path).lock()


def test_one_sync_serves_a_round(tmp_path: Path) -> None:
    log_dir = made(tmp_path, "fsync", 50)
    for partition in range(50):
        assert log_dir.writer.append(log_dir.logs[TOPIC, partition], *batch(b"x"), None) == 0
    assert settle(log_dir) == [0] * 50
    assert all(len(found) == 1 for found in contents(log_dir).values())
