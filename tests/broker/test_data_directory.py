"""A broker with a data directory, ended and started again (OS-11, OS-31, OC-20)."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from kproto import registry
from kproto.headers import request_frame
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k35_describe_log_dirs import DescribeLogDirsRequest
from kproto.records.compression import Compression
from kproto.records.record_batch import read_record_batch
from kproto_server import Broker
from kproto_server.configuration.data_directory import DataDirectory
from kproto_server.storage.errors import DirectoryInUse

if TYPE_CHECKING:
    from pathlib import Path

    from kproto.message import Request
    from kproto_server.configuration.data_directory import Durability

DURABILITIES = pytest.mark.parametrize("durability", ["os", "fsync"])


class Client:
    """One connection."""

    def __init__(self, broker: Broker) -> None:
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), 10)
        self._socket.settimeout(10)

    def ask(self, request: Request, version: int) -> Any:
        self._socket.sendall(request_frame(request, version, correlation_id=1, client_id="c"))
        size = int.from_bytes(self._read(4), "big")
        body = self._read(size)
        codec = registry.codec(type(request)._api_key, version)
        return codec.decode_response(body, 4)[0]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self._socket.recv(size - len(data))
        return data

    def close(self) -> None:
        self._socket.close()

    def make_topic(self) -> None:
        topics = (MetadataRequestTopic(name="t"),)
        self.ask(MetadataRequest(topics=topics), 1)
        assert self.ask(MetadataRequest(topics=topics), 1).topics[0].error_code == 0
        self.ask(FindCoordinatorRequest(key="g"), 0)
        assert self.ask(FindCoordinatorRequest(key="g"), 0).error_code == 0

    def commit(self, offset: int, version: int) -> int:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
        topics = (OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
        response = self.ask(OffsetCommitRequest(group_id="g", topics=topics), version)
        error: int = response.topics[0].partitions[0].error_code
        return error

    def committed(self, version: int) -> int:
        topics = (OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)
        response = self.ask(OffsetFetchRequest(group_id="g", topics=topics), version)
        offset: int = response.topics[0].partitions[0].committed_offset
        return offset


@DURABILITIES
def test_offsets_and_topics_come_back(tmp_path: Path, durability: Durability) -> None:
    """OS-11; what OffsetCommit v0 stores is as safe, and as far from the rest, as it was in ZooKeeper (OC-20)."""
    data = DataDirectory(str(tmp_path), durability)
    for turn in range(3):
        with Broker.running(data=data) as broker:
            client = Client(broker)
            if turn == 0:
                client.make_topic()
            else:
                assert (client.committed(1), client.committed(0)) == (turn * 10 - 1, turn * 100 - 1)
            for number in range(1, 10):
                assert client.commit(turn * 10 + number, 2) == 0
            assert client.commit(turn * 100 + 99, 0) == 0
            client.close()


@DURABILITIES
def test_reset_forgets_what_is_on_disk(tmp_path: Path, durability: Durability) -> None:
    data = DataDirectory(str(tmp_path), durability)
    with Broker.running(data=data) as broker:
        client = Client(broker)
        client.make_topic()
        assert (client.commit(1, 2), client.commit(2, 0)) == (0, 0)
        broker.reset()
        client.make_topic()
        assert client.committed(1) == -1
        assert client.commit(7, 2) == 0
        client.close()
    with Broker.running(data=data) as broker:
        client = Client(broker)
        assert (client.committed(1), client.committed(0)) == (7, -1)
        client.close()


def test_two_brokers_do_not_share_a_directory(tmp_path: Path) -> None:
    with Broker.running(data=str(tmp_path)), pytest.raises(DirectoryInUse, match="in use"):
        Broker(data=str(tmp_path)).start()


@DURABILITIES
@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD])
def test_batches_of_offsets_are_compressed_if_told(codec: Compression, durability: Durability, tmp_path: Path) -> None:
    data = DataDirectory(str(tmp_path), durability)
    settings = {"offsets.topic.compression.codec": str(codec.value), "offsets.topic.num.partitions": "1"}
    with Broker(data=data, settings=settings) as broker:
        client = Client(broker)
        client.make_topic()
        for offset in range(5):
            assert client.commit(offset, 2) == 0
        client.close()
    written = (tmp_path / "__consumer_offsets-0" / f"{0:020}.log").read_bytes()
    batches = []
    while written:
        batch, position = read_record_batch(written)
        batches.append(batch)
        written = written[position:]
    assert [batch.compression for batch in batches] == [codec] * 5
    with Broker(data=data) as broker:
        client = Client(broker)
        client.make_topic()
        assert client.committed(1) == 4
        client.close()


@DURABILITIES
def test_log_dirs_tell_what_the_files_take(durability: Durability, tmp_path: Path) -> None:
    with Broker(data=DataDirectory(str(tmp_path), durability)) as broker:
        client = Client(broker)
        client.make_topic()
        for offset in range(5):
            assert client.commit(offset, 2) == 0
        (told,) = client.ask(DescribeLogDirsRequest(topics=None), 1).results
        client.close()
        sizes = {
            f"{topic.name}-{partition.partition_index}": partition.partition_size
            for topic in told.topics
            for partition in topic.partitions
        }
        assert told.log_dir == str(tmp_path)
        assert max(sizes.values()) > 300
        assert sizes == {name: sum(f.stat().st_size for f in (tmp_path / name).glob("*.log")) for name in sizes}
