"""Test data for logs: record batches, data directories with one topic, and the content of logs and files."""

from __future__ import annotations

from pathlib import Path

from kproto.records.batches import read_batches
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.storage.disk import Disk, read_all
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.partition_log import PartitionLog
from kproto_server.storage.topics_file import StoredTopic

TOPIC = "__consumer_offsets"
NOW_MS = 1_700_000_000_000


def batch_of(*values: bytes) -> tuple[bytes, int]:
    """Return a batch with one record and key for each value, and its record count."""
    records = [Record(b"key %d" % index, value, offset=index, timestamp=NOW_MS) for index, value in enumerate(values)]
    return build_record_batch(records, base_sequence=0), len(records)


def batch_values(data: bytes) -> list[list[bytes | None]]:
    """Return the values of each batch of a segment."""
    return [[record.value for record in found.records()] for found in read_batches(data)]


def log_values(disk: Disk, log: PartitionLog) -> list[list[bytes | None]]:
    """Return the values of each batch of a log on disk; check that offsets rise without a gap."""
    found = []
    next_offset = log.start_offset
    for segment in log.segments():
        data = read_all(disk, segment.path) if disk.exists(segment.path) else b""
        assert len(data) == segment.size
        for batch in read_batches(data):
            records = batch.records()
            assert [record.offset for record in records] == list(range(next_offset, next_offset + len(records)))
            next_offset += len(records)
            found.append([record.value for record in records])
    assert next_offset == log.next_offset
    return found


def new_log_dir(disk: Disk, partition_count: int, **options: object) -> LogDir:
    """Return a new data directory with one topic."""
    log_dir = LogDir(disk, **options)  # type: ignore[arg-type]  # options of the test
    log_dir.create_logs(TOPIC, partition_count)
    log_dir.save_topics([StoredTopic(TOPIC, bytes(16), ((0,),) * partition_count, {}, partition_count)])
    return log_dir


def append(log_dir: LogDir, partition: int, *values: bytes) -> int:
    """Append a batch and run a group commit; return the error of the batch."""
    log = log_dir.logs[TOPIC, partition]
    error = log_dir.writer.append(log, *batch_of(*values), None)
    return error or run_group_commit(log_dir)[-1]


def run_group_commit(log_dir: LogDir) -> list[int]:
    """Write and sync the queued batches; return the error of each."""
    group_commit = log_dir.writer.begin()
    assert group_commit is not None
    while True:
        group_commit.sync()
        settled = log_dir.writer.finish(group_commit)
        if settled is not None:
            return [error for _, error in settled]


def write_file(disk: Disk, path: str, content: bytes) -> None:
    """Give a file this content, and nothing else."""
    file = disk.open(path, create=True)
    file.truncate(0)
    file.write_at(0, content)
    file.close()


def flip_bits(disk: Disk, path: str, position: int, mask: int = 1) -> None:
    """Damage one byte of a file."""
    file = disk.open(path)
    (value,) = file.read_at(position, 1)
    file.write_at(position, bytes([value ^ mask]))
    file.close()


def files(directory: Path) -> dict[str, bytes]:
    """Return the content of all files below a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
