"""What versions of Fetch that do not know zstd get of a topic whose ``compression.type`` it is, as measured on 2.1.1,
2.8.2, 3.9.2, 4.0.0 and 4.4.0."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kproto.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kproto.records.compression import Compression
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.broker.broker import Broker
from tests.network.raw_client import RawClient

BATCH = build_record_batch([Record(None, b"value")], compression=Compression.ZSTD)


def create(client: RawClient, name: str, compression: str) -> None:
    config = CreatableTopicConfig(name="compression.type", value=compression)
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=(config,))
    client.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 3)


def produce(client: RawClient, name: str) -> None:
    data = TopicProduceData(name=name, partition_data=(PartitionProduceData(index=0, records=BATCH),))
    client.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=(data,)), 7)


def fetched(client: RawClient, name: str, version: int, offset: int = 0) -> PartitionData:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=name, partitions=(partition,)),))
    found: PartitionData = client.ask(request, version).responses[0].partitions[0]
    return found


@pytest.mark.parametrize(
    ("release", "is_refused"), [("2.1", True), ("2.8", True), ("3.9", True), ("4.0", False), ("4.4", False)]
)
def test_a_topic_with_zstd(release: str, is_refused: bool) -> None:
    refused = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    with Broker.running(kafka_version=release) as broker, RawClient(broker.bootstrap_servers) as client:
        for name, compression in (("zstd", "zstd"), ("empty", "zstd"), ("producer", "producer")):
            create(client, name, compression)
        produce(client, "zstd")
        produce(client, "producer")
        for version in (4, 9):
            found = fetched(client, "zstd", version)
            assert (found.error_code, found.high_watermark) == ((refused, -1) if is_refused else (0, 1))
            if release == "3.9":
                assert (found.records, found.aborted_transactions) == (None, ())
            assert fetched(client, "empty", version).error_code == (refused if is_refused else 0)
            beyond = refused if is_refused else ErrorCode.OFFSET_OUT_OF_RANGE
            assert fetched(client, "zstd", version, offset=9).error_code == beyond
            assert fetched(client, "producer", version).records == fetched(client, "producer", 10).records
        assert fetched(client, "zstd", 10).error_code == 0
