"""A broker with a data directory keeps topics and offsets over restarts (OS-11, OS-31, OC-20)."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import pytest

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k35_describe_log_dirs import DescribeLogDirsRequest
from kproto.records.compression import Compression
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch, read_record_batch
from kproto_server import Broker, DataDirectory
from kproto_server.storage.errors import DirectoryInUse
from tests.coordinator.broker_state import commit_request
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset, committed, find_coordinator, topic_names
from tests.robustness.changes import create_topic as create_request
from tests.robustness.changes import errors_of, produce

if TYPE_CHECKING:
    from pathlib import Path

    from kproto_server.configuration.data_directory import Durability

DURABILITIES = pytest.mark.parametrize("durability", ["os", "fsync"])


@DURABILITIES
def test_offsets_and_topics_survive_restarts(tmp_path: Path, durability: Durability) -> None:
    """Offsets of OffsetCommit v0 survive too and stay apart from the others, as in ZooKeeper (OS-11, OC-20)."""
    data = DataDirectory(str(tmp_path), durability)
    for start in range(3):
        with Broker.running(data=data) as broker, RawClient(broker.bootstrap_servers) as client:
            if start:
                assert topic_names(client) == {"t", "__consumer_offsets"}
                assert (committed(client), committed(client, version=0)) == (start * 10 - 1, start * 100 - 1)
            for number in range(1, 10):
                assert commit_offset(client, offset=start * 10 + number) == 0
            assert commit_offset(client, offset=start * 100 + 99, version=0) == 0


@DURABILITIES
def test_reset_removes_the_data_on_disk(tmp_path: Path, durability: Durability) -> None:
    data = DataDirectory(str(tmp_path), durability)
    with Broker.running(data=data) as broker:
        for _ in range(2):
            with RawClient(broker.bootstrap_servers) as client:
                find_coordinator(client, "g")
                assert (committed(client), committed(client, version=0)) == (-1, -1)
                assert commit_offset(client, offset=1) == 0
                assert commit_offset(client, offset=2, version=0) == 0
            broker.reset()
    with Broker.running(data=data) as broker, RawClient(broker.bootstrap_servers) as client:
        find_coordinator(client, "g")
        assert committed(client) == -1
        assert commit_offset(client, offset=7) == 0
    with Broker.running(data=data) as broker, RawClient(broker.bootstrap_servers) as client:
        assert (committed(client), committed(client, version=0)) == (7, -1)


def test_two_brokers_do_not_share_a_directory(tmp_path: Path) -> None:
    with Broker.running(data=str(tmp_path)), pytest.raises(DirectoryInUse, match="in use"):
        Broker(data=str(tmp_path)).start()


def test_a_start_that_fails_releases_the_directory_and_all_descriptors(tmp_path: Path) -> None:
    data, file = str(tmp_path / "data"), tmp_path / "file"
    file.touch()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        with pytest.raises(UsageError, match="TLS: can't write"):
            Broker(data=data, tls="auto", tls_directory=str(file / "tls")).start()
    with Broker.running(data=data), pytest.raises(DirectoryInUse):
        Broker(data=data).start()
    assert len(os.listdir("/proc/self/fd")) == before


@DURABILITIES
@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD])
def test_offset_batches_have_the_configured_compression(
    codec: Compression, durability: Durability, tmp_path: Path
) -> None:
    data = DataDirectory(str(tmp_path), durability)
    settings = {"offsets.topic.compression.codec": str(codec.value), "offsets.topic.num.partitions": "1"}
    with Broker(data=data, settings=settings) as broker, RawClient(broker.bootstrap_servers) as client:
        for offset in range(5):
            assert commit_offset(client, offset=offset) == 0
    written = (tmp_path / "__consumer_offsets-0" / f"{0:020}.log").read_bytes()
    batches = []
    while written:
        batch, position = read_record_batch(written)
        batches.append(batch)
        written = written[position:]
    assert [batch.compression for batch in batches] == [codec] * 5
    with Broker(data=data) as broker, RawClient(broker.bootstrap_servers) as client:
        assert committed(client) == 4


@DURABILITIES
def test_describe_log_dirs_returns_the_sizes_of_the_files(durability: Durability, tmp_path: Path) -> None:
    data = DataDirectory(str(tmp_path), durability)
    with Broker(data=data) as broker, RawClient(broker.bootstrap_servers) as client:
        for offset in range(5):
            assert commit_offset(client, offset=offset) == 0
        (described,) = client.ask(DescribeLogDirsRequest(topics=None), 1).results
        sizes = {
            f"{topic.name}-{partition.partition_index}": partition.partition_size
            for topic in described.topics
            for partition in topic.partitions
        }
        assert described.log_dir == str(tmp_path)
        assert max(sizes.values()) > 300
        assert sizes == {name: sum(f.stat().st_size for f in (tmp_path / name).glob("*.log")) for name in sizes}


def test_a_topic_is_saved_before_a_response_behind_a_commit(tmp_path: Path) -> None:
    """The request behind a commit is handled when the commit is synced, after the other responses are sent."""
    with Broker.running(data=str(tmp_path)) as broker, RawClient(broker.bootstrap_servers) as client:
        assert commit_offset(client) == 0
        for number in range(30):
            client.send((commit_request("g", {"t": {0: number}}), 2), create_request(f"new-{number}"))
            client.read_ids(2)
            assert f'"new-{number}"' in (tmp_path / "topics.json").read_text()


@DURABILITIES
@pytest.mark.parametrize("name", [f"{0:020}.log", f"{0:020}.log.swap"])
def test_records_of_an_unknown_topic_never_become_those_of_a_new_one(
    name: str, durability: Durability, tmp_path: Path
) -> None:
    """A directory that no topic has is left alone: records for a topic of its name cannot be written."""
    data = DataDirectory(str(tmp_path), durability)
    with Broker.running(data=data) as broker, RawClient(broker.bootstrap_servers) as client:
        path = tmp_path / "new-0" / name
        path.parent.mkdir()
        path.write_bytes(b"of a directory that was copied here")
        for request, error in ((create_request("new"), []), (produce("new", [b"x"]), [56])):
            assert errors_of(client.ask(*request)) == error
        path.unlink()
        assert errors_of(client.ask(*produce("new", [b"x"]))) == []


LENGTH, MAGIC = 8, 16
"""Positions in a batch."""


def fill(path: Path, *topics: str) -> bytes:
    """Have a broker with this data directory write a batch to each of these new topics; return the batch."""
    batch = build_record_batch([Record(b"k", b"v", timestamp=1)])
    with Broker.running(data=str(path)) as broker, RawClient(broker.bootstrap_servers) as client:
        for name in topics:
            broker.topics.create(name)
            data = (PartitionProduceData(index=0, records=batch),)
            topic_data = (TopicProduceData(name=name, partition_data=data),)
            client.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topic_data), 7)
    return batch


def fetch(*topics: str, max_bytes: int) -> FetchRequest:
    partitions = (FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20),)
    fetched = tuple(FetchTopic(topic=name, partitions=partitions) for name in topics)
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=fetched)


@pytest.mark.parametrize("max_bytes", [1 << 10, 1 << 30])
@pytest.mark.parametrize(
    ("position", "damage"),
    [(MAGIC, b"\x22"), (LENGTH, b"\xff\xff\xff\xf4"), (LENGTH, bytes(4)), (LENGTH, b"\0\0\0\x0e\0\0\0\0\x01")],
)
def test_a_batch_that_is_damaged_on_disk_is_an_error_of_its_partition_only(
    tmp_path: Path, max_bytes: int, position: int, damage: bytes
) -> None:
    """A Fetch of this and of other partitions closed the connection, or never ended."""
    batch = fill(tmp_path, "damaged", "sound")
    (log,) = (tmp_path / "damaged-0").glob("*.log")
    stored = log.read_bytes()
    log.write_bytes(stored[:position] + damage + stored[position + len(damage) :])
    request = fetch("damaged", "sound", max_bytes=max_bytes)
    with Broker.running(data=str(tmp_path)) as broker, RawClient(broker.bootstrap_servers) as client:
        damaged, sound = (topic.partitions[0] for topic in client.ask(request, 4).responses)
    assert (damaged.error_code, sound.error_code) == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    assert len(sound.records) == len(batch)


def test_a_file_that_cannot_be_read_is_an_error_of_its_partition_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The connection was closed. A lost file stands for a disk that fails, and for a process without descriptors."""
    batch = fill(tmp_path, "lost", "sound")
    request = fetch("lost", "sound", max_bytes=1 << 20)
    at_time = (ListOffsetsPartition(partition_index=0, timestamp=1),)
    by_time = ListOffsetsRequest(
        replica_id=-1, topics=tuple(ListOffsetsTopic(name=name, partitions=at_time) for name in ("lost", "sound"))
    )
    with Broker.running(data=str(tmp_path)) as broker, RawClient(broker.bootstrap_servers) as client:
        (log,) = (tmp_path / "lost-0").glob("*.log")
        log.unlink()
        for version, error in ((5, ErrorCode.NOT_LEADER_OR_FOLLOWER), (6, ErrorCode.KAFKA_STORAGE_ERROR)):
            lost, sound = (topic.partitions[0] for topic in client.ask(request, version).responses)
            assert (lost.error_code, sound.error_code, len(sound.records)) == (error, 0, len(batch))
        lost, sound = (topic.partitions[0] for topic in client.ask(by_time, 1).topics)
        assert (lost.error_code, sound.error_code, sound.offset) == (ErrorCode.KAFKA_STORAGE_ERROR, 0, 0)
    assert "lost-0 can't be read: [Errno 2]" in caplog.text
