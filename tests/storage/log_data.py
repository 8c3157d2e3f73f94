"""Batches for logs, and what is in a log."""

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


def batch(*values: bytes) -> tuple[bytes, int]:
    """A batch, and how many records it has; one key for each of its records."""
    records = [Record(b"key %d" % index, value, offset=index, timestamp=NOW_MS) for index, value in enumerate(values)]
    return build_record_batch(records, base_sequence=0), len(records)


def values(octets: bytes) -> list[list[bytes | None]]:
    """What the batches of a segment hold."""
    return [[record.value for record in found.records()] for found in read_batches(octets)]


def log_values(disk: Disk, log: PartitionLog) -> list[list[bytes | None]]:
    """What a log holds, as it is on the disk; its offsets go on without a gap."""
    found = []
    next_offset = log.start_offset
    for segment in log.segments():
        octets = read_all(disk, segment.path) if disk.exists(segment.path) else b""
        assert len(octets) == segment.size
        for one in read_batches(octets):
            records = one.records()
            assert [record.offset for record in records] == list(range(next_offset, next_offset + len(records)))
            next_offset += len(records)
            found.append([record.value for record in records])
    assert next_offset == log.next_offset
    return found


def new_log_dir(disk: Disk, partitions: int, **options: object) -> LogDir:
    """A directory with one topic."""
    made = LogDir(disk, **options)  # type: ignore[arg-type]  # whatever the test says
    made.create_logs(TOPIC, partitions)
    made.save_topics([StoredTopic(TOPIC, bytes(16), ((0,),) * partitions, {}, partitions)])
    return made


def append(log_dir: LogDir, partition: int, *content: bytes) -> int:
    """Append a batch and have it settled; return its error."""
    log = log_dir.logs[TOPIC, partition]
    error = log_dir.writer.append(log, *batch(*content), None)
    return error or settle(log_dir)[-1]


def settle(log_dir: LogDir) -> list[int]:
    """Write and sync what is queued; return the errors of each batch."""
    begun = log_dir.writer.begin()
    assert begun is not None
    if begun.needs_sync:
        begun.sync()
    return [error for _, error in log_dir.writer.finish(begun)]


def files(directory: Path) -> dict[str, bytes]:
    """The content of all files below a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
