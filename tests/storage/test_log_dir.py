"""A data directory on a real file system: written, closed or killed, and opened again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kproto.codes import ErrorCode
from kproto.errors import LogError
from kproto_server.inspect.directory import find_logs
from kproto_server.inspect.verify import verify
from kproto_server.storage.disk import RealDisk
from kproto_server.storage.errors import DirectoryInUse
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.log_writer import Durability
from kproto_server.storage.removal import Removal
from kproto_server.testing.simulated_disk import Operation, SimulatedDisk
from tests.storage.log_data import TOPIC, append, batch_of, files, log_values, new_log_dir, run_group_commit

DURABILITIES: tuple[Durability, ...] = ("os", "fsync")
WAL_SIZE_BYTES = 256 << 10


@pytest.fixture(params=DURABILITIES)
def durability(request: pytest.FixtureRequest) -> Durability:
    value: Durability = request.param
    return value


def reopen(path: Path, durability: Durability, **options: object) -> LogDir:
    return LogDir(RealDisk(path), durability=durability, wal_size_bytes=WAL_SIZE_BYTES, **options)  # type: ignore[arg-type]  # options of the test


def new(path: Path, durability: Durability, partitions: int = 3, **options: object) -> LogDir:
    return new_log_dir(RealDisk(path), partitions, durability=durability, wal_size_bytes=WAL_SIZE_BYTES, **options)


def values(log_dir: LogDir) -> dict[int, list[list[bytes | None]]]:
    return {partition: log_values(log_dir.disk, log) for (_, partition), log in log_dir.logs.items()}


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_acknowledged_batches_are_there_after_a_restart(tmp_path: Path, durability: Durability, end: str) -> None:
    log_dir = new(tmp_path, durability)
    for number in range(20):
        assert append(log_dir, number % 3, b"first %d" % number, b"second %d" % number) == 0
    before = values(log_dir)
    assert sum(map(len, before.values())) == 20
    if end == "closed":
        log_dir.close()
    reopened = reopen(tmp_path, durability)
    assert values(reopened) == before
    assert reopened.report == []
    assert [topic.name for topic in reopened.topics] == [TOPIC]
    assert append(reopened, 0, b"more") == 0
    reopened.close()


def test_a_second_start_changes_nothing(tmp_path: Path, durability: Durability) -> None:
    log_dir = new(tmp_path, durability)
    for number in range(9):
        assert append(log_dir, number % 3, b"%d" % number) == 0
    log_dir.close()
    reopen(tmp_path, durability).close()
    first = files(tmp_path)
    reopen(tmp_path, durability).close()
    assert files(tmp_path) == first


def test_batches_of_a_group_commit_keep_their_order(tmp_path: Path, durability: Durability) -> None:
    log_dir = new(tmp_path, durability)
    for number in range(10):
        assert log_dir.writer.append(log_dir.logs[TOPIC, number % 2], *batch_of(b"%d" % number), number) == 0
    group_commit = log_dir.writer.begin()
    assert group_commit is not None
    assert log_dir.writer.begin() is None, "one group commit is in flight at a time"
    group_commit.sync()
    assert log_dir.writer.finish(group_commit) == [(number, 0) for number in range(10)]
    assert values(log_dir)[1] == [[b"%d" % number] for number in range(1, 10, 2)]


def test_segments_roll_at_their_size_and_are_named_by_their_first_offset(
    tmp_path: Path, durability: Durability
) -> None:
    log_dir = new(tmp_path, durability, 1, segment_bytes=300)
    for number in range(12):
        assert append(log_dir, 0, b"a" * 30, b"%d" % number) == 0
    segments = log_dir.logs[TOPIC, 0].segments()
    assert len(segments) > 3
    assert all(segment.size <= 300 for segment in segments)
    assert [Path(segment.path).name for segment in segments] == [f"{one.base_offset:020}.log" for one in segments]
    before = values(log_dir)
    reopened = reopen(tmp_path, durability, segment_bytes=300)
    assert values(reopened) == before
    reopened.close()
    checked = verify(find_logs(str(tmp_path)), note=lambda text: None, progress=lambda size: None, partitions=1)
    assert checked.records == 24


def test_a_batch_above_the_limit_is_refused(tmp_path: Path, durability: Durability) -> None:
    log_dir = new(tmp_path, durability, batch_size_max_bytes=200)
    log = log_dir.logs[TOPIC, 0]
    assert log_dir.writer.append(log, *batch_of(b"x" * 200), None) == ErrorCode.MESSAGE_TOO_LARGE
    assert log_dir.writer.begin() is None
    assert log.next_offset == 0


def test_the_write_ahead_log_does_not_restore_removed_logs(tmp_path: Path, durability: Durability) -> None:
    log_dir = new(tmp_path, durability)
    assert append(log_dir, 0, b"of the removed log") == 0
    log_dir.remove_logs([TOPIC])
    log_dir.create_logs(TOPIC, 3)
    reopened = reopen(tmp_path, durability)
    assert values(reopened) == {0: [], 1: [], 2: []}
    assert reopened.report == []


def test_the_undo_of_a_removal_is_tried_again(durability: Durability) -> None:
    """Meanwhile the removal of other logs does not remove these."""
    disk = SimulatedDisk()
    log_dir = new_log_dir(disk, 1, durability=durability)
    assert append(log_dir, 0, b"x") == 0
    topics = list(log_dir.topics)
    log_dir.create_logs("other", 1)
    renames: list[str] = []

    def fails(operation: Operation) -> bool:
        renames.extend([operation.path] if operation.kind == "rename" and "recovery" not in operation.path else [])
        return len(renames) > 1

    disk.fails = fails
    with pytest.raises(OSError, match="error"):
        log_dir.save_topics([], deleted=[TOPIC])
    disk.fails = lambda operation: operation.path.startswith(f"{TOPIC}-0")
    log_dir.retry_undo()
    log_dir.save_topics(topics, deleted=["other"])
    assert not disk.exists(f"{TOPIC}-0")
    disk.fails = lambda operation: False
    log_dir.retry_undo()
    assert log_values(disk, log_dir.logs[TOPIC, 0]) == [[b"x"]]
    log_dir.save_topics([], deleted=[TOPIC])
    assert not any(name.startswith(TOPIC) for name in disk.names(""))


def test_a_removal_that_was_not_undone_is_done_by_the_next_deletion() -> None:
    disk = SimulatedDisk()
    removal = Removal(disk)
    disk.make_directory("t-0")
    renamed = removal.rename(["t-0"])
    disk.fails = lambda operation: True
    removal.undo(renamed)
    disk.fails = lambda operation: False
    removal.remove_renamed()
    assert disk.names("") == list(renamed.values())
    assert removal.rename(["t-0"]) == renamed
    removal.remove_renamed()
    assert disk.names("") == []


def test_a_second_process_and_a_second_broker_are_refused(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk.lock()
    script = (
        "import sys; from kproto_server.storage.disk import RealDisk; "
        "from kproto_server.storage.errors import DirectoryInUse\n"
        "try: RealDisk(sys.argv[1]).lock()\n"
        "except DirectoryInUse as error: print(error)\n"
    )
    argv = [sys.executable, "-c", script, str(tmp_path)]
    refused = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert refused.stdout == f"{tmp_path} is in use by another broker; stop it, or use another directory\n"
    with pytest.raises(DirectoryInUse):
        RealDisk(tmp_path).lock()
    disk.unlock()
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == ""
    RealDisk(tmp_path).lock()


def test_one_sync_serves_a_group_commit(tmp_path: Path) -> None:
    log_dir = new(tmp_path, "fsync", 50)
    for partition in range(50):
        assert log_dir.writer.append(log_dir.logs[TOPIC, partition], *batch_of(b"x"), None) == 0
    assert run_group_commit(log_dir) == [0] * 50
    assert all(len(found) == 1 for found in values(log_dir).values())


CREDENTIAL = {"user": "u", "mechanism": "SCRAM-SHA-256", "salt": "", "stored_key": "", "server_key": ""}
ACL = {
    "resource_type": 2, "name": "t", "pattern_type": 3, "principal": "User:u", "host": "*", "operation": 3,
    "permission": 3,
}  # fmt: skip


def beside_topics(**fields: object) -> dict[str, object]:
    return {"version": 1, "topics": [], **fields}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"version": 2, "topics": 0}, "topics.json has version 2, this kproto reads version 1"),
        ({"topics": []}, "topics.json is damaged .*; remove it"),
        ({"version": 1, "topics": [{}]}, "topics.json is damaged .*; remove it"),
        (beside_topics(scram=[CREDENTIAL | {"iterations": 1e308}]), r"SCRAM credential with iterations 1e\+308\)"),
        (beside_topics(scram=[CREDENTIAL | {"iterations": 2**31}]), r"SCRAM credential with iterations 2147483648\)"),
        (beside_topics(acls=[ACL | {"operation": 128}]), r"ACL with operation 128\)"),
        (beside_topics(acls=[ACL | {"host": "\ud800"}]), "surrogates not allowed"),
        (beside_topics(quotas=[{"entity": {"user": "u"}, "values": {"x": "many"}}]), "could not convert string"),
    ],
)
def test_a_directory_of_another_version_or_with_a_damaged_topics_file_is_refused(
    tmp_path: Path, content: object, error: str
) -> None:
    new(tmp_path, "os").close()
    before = files(tmp_path)
    (tmp_path / "topics.json").write_text(json.dumps(content))
    with pytest.raises(LogError, match=error):
        reopen(tmp_path, "os")
    (tmp_path / "topics.json").write_bytes(before["topics.json"])
    assert files(tmp_path) == before
