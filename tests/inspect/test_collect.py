"""`kproto log collect` copies what is new in a log.dir, and what the copy has is what the other commands read."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

import pytest

from kproto.logs.files import PartitionDirectory
from kproto.logs.index import tail_offset
from kproto.records.batches import read_records
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto.records.segment_files import segment_name
from kproto_server import Broker
from kproto_server.commandline import cli
from kproto_server.inspect.collect import COLLECTED, Collected, collect
from kproto_server.inspect.progress import Progress
from tests.inspect.logs import FIRST_SEGMENT, OFFSETS, RELEASES, commit, copy_of, partition_folder


def batch(offset: int, group: str = "g1") -> bytes:
    return build_record_batch([commit(offset, group)], base_offset=offset)


def collected(log_dir: Path, copy: Path, *notes: str) -> int:
    """Collect, check the notes, and return how many bytes were copied."""
    found: list[str] = []
    result = collect(str(log_dir), str(copy), found.append, lambda size: Progress(size, io.StringIO()))
    assert found == list(notes)
    assert isinstance(result, Collected)
    return result.new_bytes


def segments(copy: Path, partition: str = OFFSETS) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((copy / partition).glob("*.log*"))}


@pytest.mark.parametrize("release", RELEASES)
def test_the_copy_of_a_real_log_reads_as_the_log(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, release: str
) -> None:
    log_dir, copy = copy_of(release, tmp_path), tmp_path / "copy"
    assert cli.main(["log", "collect", str(log_dir), "--to", str(copy)]) == 0
    assert "bytes copied to" in capsys.readouterr().out
    dumps = []
    for directory in (log_dir, copy):
        assert cli.main(["log", "dump", str(directory)]) == 0
        dumps.append(capsys.readouterr().out)
    assert dumps[0] == dumps[1]
    assert cli.main(["log", "verify", str(copy)]) == 0
    assert collected(log_dir, copy) == 0


def test_only_whole_new_batches_are_copied(tmp_path: Path) -> None:
    folder, copy = partition_folder(tmp_path / "log", {0: batch(0)}), tmp_path / "copy"
    assert collected(tmp_path / "log", copy) == len(batch(0))
    with open(folder / FIRST_SEGMENT, "ab") as file:
        file.write(batch(1) + batch(2)[:50])
    assert collected(tmp_path / "log", copy) == len(batch(1))
    with open(folder / FIRST_SEGMENT, "ab") as file:
        file.write(batch(2)[50:] + bytes(4096))  # zeros, as in a preallocated file
    assert collected(tmp_path / "log", copy) == len(batch(2))
    assert segments(copy) == {FIRST_SEGMENT: batch(0) + batch(1) + batch(2)}


def test_a_batch_longer_than_a_read_is_copied_whole(tmp_path: Path) -> None:
    large = build_record_batch([Record(b"k", os.urandom(3 << 20))])
    partition_folder(tmp_path / "log", {0: large + build_record_batch([Record(b"k", b"v", offset=1)], base_offset=1)})
    collected(tmp_path / "log", tmp_path / "copy")
    assert len(segments(tmp_path / "copy")[FIRST_SEGMENT]) > len(large)


def test_the_rest_of_a_segment_follows_when_it_is_rolled(tmp_path: Path) -> None:
    folder, copy = partition_folder(tmp_path / "log", {0: batch(0)}), tmp_path / "copy"
    collected(tmp_path / "log", copy)
    with open(folder / FIRST_SEGMENT, "ab") as file:
        file.write(batch(1))
    (folder / segment_name(2)).write_bytes(batch(2))
    assert collected(tmp_path / "log", copy) == len(batch(1) + batch(2))
    assert segments(copy) == {FIRST_SEGMENT: batch(0) + batch(1), segment_name(2): batch(2)}


def test_a_cleaned_segment_replaces_those_that_it_was_made_of(tmp_path: Path) -> None:
    folder = partition_folder(tmp_path / "log", {0: batch(0) + batch(1), 2: batch(2), 3: batch(3)})
    copy = tmp_path / "copy"
    collected(tmp_path / "log", copy)
    (folder / f"{FIRST_SEGMENT}.swap").write_bytes(batch(1) + batch(2))  # between two renames of the cleaner
    (folder / FIRST_SEGMENT).rename(folder / f"{FIRST_SEGMENT}.deleted")
    (folder / segment_name(2)).rename(folder / f"{segment_name(2)}.deleted")
    assert collected(tmp_path / "log", copy) == len(batch(1) + batch(2))
    expected = {FIRST_SEGMENT: batch(1) + batch(2), segment_name(3): batch(3)}
    assert segments(copy) == expected
    (folder / f"{FIRST_SEGMENT}.swap").rename(folder / FIRST_SEGMENT)
    assert collected(tmp_path / "log", copy) == 0
    assert segments(copy) == expected


def test_a_truncated_segment_with_other_batches_is_copied_again(tmp_path: Path) -> None:
    """A broker that became a follower has truncated its log; the new batches may have the size of the old ones."""
    folder, copy = partition_folder(tmp_path / "log", {0: batch(0) + batch(1)}), tmp_path / "copy"
    collected(tmp_path / "log", copy)
    with open(folder / FIRST_SEGMENT, "r+b") as file:
        file.write(batch(0) + batch(1, "g2") + batch(2))
    assert collected(tmp_path / "log", copy) == len(batch(0) + batch(1) + batch(2))
    assert segments(copy) == {FIRST_SEGMENT: batch(0) + batch(1, "g2") + batch(2)}


def test_an_interrupted_copy_is_completed(tmp_path: Path) -> None:
    folder, copy = partition_folder(tmp_path / "log", {0: batch(0)}), tmp_path / "copy"
    collected(tmp_path / "log", copy)
    with open(folder / FIRST_SEGMENT, "ab") as file:
        file.write(batch(1))
    with open(copy / OFFSETS / FIRST_SEGMENT, "ab") as file:
        file.write(batch(1)[:30])  # and `collected.json` was not written
    (copy / OFFSETS / f"{segment_name(2)}.part").write_bytes(b"half")
    assert collected(tmp_path / "log", copy) == len(batch(1))
    (copy / COLLECTED).write_text('{"a": 1')
    assert collected(tmp_path / "log", copy) == len(batch(0) + batch(1))
    assert segments(copy) == {FIRST_SEGMENT: batch(0) + batch(1)}


def test_of_other_topics_the_end_is_copied(tmp_path: Path) -> None:
    """The last batch that the index has, and what follows: enough for lag."""
    partition_folder(tmp_path / "log", {0: batch(0)})
    folder, copy = tmp_path / "log" / "orders-3", tmp_path / "copy"
    folder.mkdir()
    records = [Record(b"k", bytes(1000), offset=offset) for offset in range(10)]
    batches = [build_record_batch([record], base_offset=record.offset) for record in records]
    (folder / FIRST_SEGMENT).write_bytes(b"".join(batches))
    position = sum(map(len, batches[:8]))
    (folder / "00000000000000000000.index").write_bytes((8).to_bytes(4, "big") + position.to_bytes(4, "big"))
    collected(tmp_path / "log", copy)
    assert segments(copy, "orders-3") == {segment_name(8): batches[8] + batches[9]}
    end = tail_offset(PartitionDirectory("orders", 3, copy / "orders-3"))
    assert end == 8
    (folder / segment_name(10)).write_bytes(b"")
    collected(tmp_path / "log", copy)
    assert segments(copy, "orders-3") == {segment_name(10): b""}


def test_a_partition_that_has_gone_stays_in_the_copy_and_is_noted(tmp_path: Path) -> None:
    partition_folder(tmp_path / "log", {0: batch(0)})
    folder = partition_folder(tmp_path / "log", {0: batch(0)}, partition=1)
    collected(tmp_path / "log", tmp_path / "copy")
    shutil.rmtree(folder)
    collected(tmp_path / "log", tmp_path / "copy", "__consumer_offsets-1 is no longer in the log.dir; its copy stays")
    assert segments(tmp_path / "copy", "__consumer_offsets-1") == {FIRST_SEGMENT: batch(0)}


def test_a_running_broker_is_copied_again_and_again(tmp_path: Path) -> None:
    log_dir, copy = tmp_path / "log", tmp_path / "copy"
    with Broker(data=str(log_dir)) as broker:
        broker.topics.create("orders")
        for round_number in range(3):
            broker.groups.commit("group", {("orders", 0): round_number})
            before = {path: path.stat().st_mtime_ns for path in sorted(log_dir.rglob("*"))}
            assert collected(log_dir, copy) > 0
            assert {path: path.stat().st_mtime_ns for path in sorted(log_dir.rglob("*"))} == before
            records = [
                record
                for folder in copy.glob("__consumer_offsets-*")
                for data in segments(copy, folder.name).values()
                for record in read_records(data)
            ]
            assert len(records) == round_number + 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["log"], "no directory for the copy given: write --to DIRECTORY"),
        (["log", "--to", "log/copy"], "log/copy and the log.dir lie in each other: give a directory apart"),
        (["log", "--to", "."], ". and the log.dir lie in each other: give a directory apart"),
        (["log", "--to", "other"], "other is not empty, and no copy of a log.dir: give another directory"),
        (["log", "--to", "other/file"], "can't write other/file: File exists"),
        (
            ["log", "--to", "hdfs://host/x"],
            "hdfs://host/x: only directories and object stores can be written: "
            "s3://, s3a://, gs://, gcs://, az://, abfs://, abfss://",
        ),
        (["s3://bucket/x", "--to", "copy"], "s3://bucket/x: give the log.dir of a broker on this machine"),
        (["other/file", "--to", "copy"], "other/file: not a segment: the name of a segment is 20 digits and .log"),
        (
            ["empty", "--to", "copy"],
            "empty: no segments and no directories like TOPIC-0; it holds no partition directories",
        ),
    ],
)
def test_what_cannot_be_copied_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    partition_folder(tmp_path / "log", {0: batch(0)})
    Path("other").mkdir()
    Path("other/file").write_text("mine")
    Path("empty").mkdir()
    assert cli.main(["log", "collect", *words]) == 2
    assert capsys.readouterr().err == f"kproto log collect: {message}\n"
    assert Path("other/file").read_text() == "mine"
