"""The examples of server/FORMAT.md are what the readers read and the writers write."""

from __future__ import annotations

import re
from pathlib import Path
from struct import calcsize

import pytest

from kproto.records.batches import read_batch
from kproto_server.storage.checkpoints import LogPosition, read_log_positions, write_log_positions
from kproto_server.storage.clean_shutdown import CleanEnd, read_clean_ends, write_clean_ends
from kproto_server.storage.disk import read_all
from kproto_server.storage.open_segments import OpenSegments
from kproto_server.storage.partition_log import PartitionLog
from kproto_server.storage.topics_file import NAME, VERSION, StoredTopic, TopicLines, read_topics, write_topics
from kproto_server.storage.write_ahead_log import FRAME_HEADER, NAMES, WriteAheadLog
from kproto_server.storage.write_ahead_log_reader import read_write_ahead_log
from kproto_server.testing.simulated_disk import SimulatedDisk
from tests.robustness.steps import count_steps
from tests.storage.log_data import write_file

PAGE = (Path(__file__).parents[2] / "server" / "FORMAT.md").read_text(encoding="utf-8")
CLEAN_REST = ((((0, 70),), 0), (((0, 104857590), (1000, 52311)), 20))
"""Segments and start offset of each log."""
POSITIONS = {("__consumer_offsets", 3): LogPosition(43, 0, 70), ("orders", 0): LogPosition(1500, 1000, 52311)}
TOPICS = [StoredTopic("orders", bytes(range(16)), ((1,), (2,)), {"cleanup.policy": "compact"}, 2)]
SIZE_BYTES = 1000


def example(name: str) -> str:
    """Return the code block of this name."""
    (block,) = re.findall(rf"^```\w+ {re.escape(name)}\n(.*?)^```$", PAGE, re.M | re.S)
    return str(block)


def frame() -> bytes:
    return bytes.fromhex(re.sub(r"#.*", "", example("write-ahead log")))


def test_the_write_ahead_log_is_read_as_described() -> None:
    disk = SimulatedDisk()
    write_file(disk, NAMES[0], frame() + bytes(SIZE_BYTES))
    content = read_write_ahead_log(disk)
    (logged,) = content.batches
    assert (logged.directory, logged.base_offset, logged.next_offset) == ("__consumer_offsets-3", 42, 43)
    found = read_batch(logged.batch)
    assert found is not None
    ((record,), end) = found[0].records(), found[1]
    assert (record.key, record.value, record.offset, record.timestamp) == (b"k", b"v", 42, 1_700_000_000_000)
    assert end == len(logged.batch)
    assert FRAME_HEADER.unpack_from(frame())[2:] == (5, 4)
    assert content.next_cycle > 5


def test_the_write_ahead_log_is_written_as_described() -> None:
    disk = SimulatedDisk()
    write_file(disk, NAMES[0], frame() + bytes(SIZE_BYTES))
    (logged,) = read_write_ahead_log(disk).batches
    log = PartitionLog(
        disk,
        "__consumer_offsets",
        3,
        closed=[],
        active=None,
        next_offset=42,
        epoch=0,
        segment_bytes=SIZE_BYTES,
        recovery_point=LogPosition(0),
        unsynced_paths=(),
        open_segments=OpenSegments(),
    )
    new_disk = SimulatedDisk()
    wal = WriteAheadLog(new_disk, cycle=4, size_bytes=SIZE_BYTES)
    wal.turn(is_needed=True)
    wal.write([(log, logged.batch)])
    assert read_all(new_disk, NAMES[0]) == frame() + bytes(SIZE_BYTES - len(frame()))


def test_the_table_of_the_frame_has_its_fields() -> None:
    codes = {"int32": "i", "uint32": "I", "int64": "q", "uint16": "H"}
    rows = re.findall(r"^\| `(size|crc|cycle|needed)` \| (\w+) \|", PAGE, re.M)
    assert [name for name, _ in rows] == ["size", "crc", "cycle", "needed"]
    assert ">" + "".join(codes[type_] for _, type_ in rows) == FRAME_HEADER.format
    assert f"a frame has {calcsize(FRAME_HEADER.format)} bytes more" in PAGE


def test_log_positions_are_read_and_written_as_described() -> None:
    data = example("kproto.recovery").encode()
    assert read_log_positions(data) == POSITIONS
    assert write_log_positions(POSITIONS) == data


def test_clean_ends_are_read_and_written_as_described() -> None:
    data = example("kproto.clean").encode()
    ends = {key: CleanEnd(end, *rest) for (key, end), rest in zip(POSITIONS.items(), CLEAN_REST, strict=True)}
    assert read_clean_ends(data) == ends
    assert write_clean_ends(ends) == data
    assert read_clean_ends(b"0\n5\nt 0 1 2 3\nt 1 1 2 3 4\nt 2 1 2 3 4:x\nt 3 1 2 3 @\nt 4 1 2 3 @-1\n") == {
        ("t", 0): CleanEnd(LogPosition(1, 2, 3))
    }


@pytest.mark.parametrize("data", [b"", b"1\n1\nt 0 1 2 3\n", b"0\n", b"0\n1\nt 0 1 2\n", b"0\n1\nt 0 -1 2 3\n"])
def test_log_positions_of_another_version_or_form_are_ignored(data: bytes) -> None:
    assert read_log_positions(data) == {}


def test_topics_are_read_and_written_as_described() -> None:
    disk = SimulatedDisk()
    write_file(disk, NAME, example("topics.json").encode())
    assert read_topics(disk) == TOPICS
    new_disk = SimulatedDisk()
    write_topics(new_disk, TOPICS)
    assert read_all(new_disk, NAME) == example("topics.json").rstrip("\n").encode()
    assert f'"version": {VERSION},' in example("topics.json")


def test_unknown_fields_of_topics_are_ignored() -> None:
    disk = SimulatedDisk()
    write_file(disk, NAME, example("topics.json").replace('"configs"', '"new": 1, "configs"').encode())
    assert read_topics(disk) == TOPICS


def test_a_topic_takes_few_steps_to_write() -> None:
    """The indented form took 0.3 s for each change of a cluster with 27,000 quotas, users and ACLs."""

    def steps(count: int) -> int:
        topics = [TOPICS[0]._replace(name=f"t{index}") for index in range(count)]
        return count_steps(lambda: write_topics(SimulatedDisk(), topics))

    steps(1)
    assert steps(30) - steps(20) < 10 * 60


def test_only_topics_that_have_changed_are_encoded_again() -> None:
    def topics(count: int) -> list[StoredTopic]:
        return [StoredTopic(f"t{index}", bytes(15) + bytes([index]), ((1,),), {}, 1) for index in range(count)]

    def steps(count: int) -> int:
        disk, lines = SimulatedDisk(), TopicLines()
        write_topics(disk, topics(count), lines=lines)
        changed = topics(count)
        changed[3] = changed[3]._replace(replicas=((1,), (2,)), configs={"retention.ms": "1"}, partition_count=2)
        del changed[1]
        taken = count_steps(lambda: write_topics(disk, changed, lines=lines))
        assert read_topics(disk) == changed
        return taken

    steps(5)
    assert steps(30) - steps(20) < 10 * 10
