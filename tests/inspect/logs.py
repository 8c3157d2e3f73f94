"""Copies of recorded logs, and logs made by tests."""

from __future__ import annotations

import shutil
from pathlib import Path

from kproto.records.coordinator import encode_key, encode_value
from kproto.records.offset_records import OffsetCommitKey, OffsetCommitValue
from kproto.records.partitioning import partition_for
from kproto.records.record import Record
from kproto.records.segment_files import segment_name
from tests.fixture_files import golden_log

RELEASES = ("2.0.1", "2.1.1", "4.4.0")
OFFSETS, TRANSACTIONS = "__consumer_offsets-0", "__transaction_state-0"
FIRST_SEGMENT = segment_name(0)
NOW = 1700000000000


def copy_of(release: str, folder: Path) -> Path:
    """Return a copy of the recorded log.dir of a release."""
    return Path(shutil.copytree(golden_log(release), folder / release))


def commit(offset: int, group: str = "g1", version: int = 3, metadata: str = "") -> Record:
    """Return an offset commit."""
    key = encode_key(OffsetCommitKey(group=group, topic="t", partition=offset % 16))
    value = OffsetCommitValue(offset=offset, metadata=metadata, commit_timestamp=NOW)
    return Record(key, encode_value(value, version), timestamp=NOW, offset=offset)


def partition_folder(log_dir: Path, segments: dict[int, bytes], *, partition: int = 0, epochs: str = "0 0\n") -> Path:
    """Make the directory of a partition with these segments, by base offset; return it."""
    folder = log_dir / f"__consumer_offsets-{partition}"
    folder.mkdir(parents=True)
    for base_offset, data in segments.items():
        (folder / segment_name(base_offset)).write_bytes(data)
    (folder / "leader-epoch-checkpoint").write_text(f"0\n{epochs.count(chr(10))}\n{epochs}")
    return folder


PARTITION_OF_G1 = partition_for("g1", 50)
