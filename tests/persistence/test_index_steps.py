"""Partitions on disk are indexed in steps, between which other clients are served: after a start and a compaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kproto.message import Request
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k21_delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k27_write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kproto.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k78_share_fetch import FetchPartition as SharePartition
from kproto.messages.k78_share_fetch import FetchTopic as ShareTopic
from kproto.messages.k78_share_fetch import ShareFetchRequest
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.partitioning import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server import Broker
from kproto_server.broker.thread import BrokerThread
from kproto_server.deferred import at_once
from kproto_server.log_manager.retention_task import retention_config
from kproto_server.network.server import Server
from kproto_server.partition_log import stored_data
from kproto_server.partition_log.retention import expired_end
from kproto_server.partition_log.stored_data import StoredData
from kproto_server.persistence import topic_logs
from tests.persistence.disk_broker import DiskBroker

STEP = 10
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (stored_data, topic_logs):
        monkeypatch.setattr(module, "SETTLED_MAX", STEP)


@contextmanager
def indexed() -> Iterator[list[int]]:
    """Return the numbers of batches that the index gets at once, without those that are 0."""
    counts: list[int] = []
    continued = StoredData._continue_index

    def counting(data: StoredData, count_max: int) -> bool:
        before = 0 if data._log_version != data.log.version else len(data._last_offsets)
        is_complete = continued(data, count_max)
        count = len(data._last_offsets) - before
        counts.extend([count] if count else [])
        return is_complete

    with mock.patch.object(StoredData, "_continue_index", autospec=True, side_effect=counting):
        yield counts


def broker_with_topic(kafka_version: str = "4.4", **configs: str) -> DiskBroker:
    broker = DiskBroker("os", kafka_version=kafka_version)
    cluster = broker.broker.state.cluster
    cluster.create_topic("t", partition_count=1, replication_factor=1, configs=configs)
    for name in (OFFSETS_TOPIC, TRANSACTION_TOPIC):
        cluster.ensure_internal_topic(name, broker.broker.clock.now_ms())
    return broker


def produce(broker: DiskBroker, key: bytes = b"k", transactional_id: str | None = None, **header: Any) -> int:
    """Produce a batch of one record; return its offset."""
    encoded = build_record_batch([Record(key, b"v", timestamp=broker.broker.clock.now_ms())], **header)
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=encoded),))
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(data,), transactional_id=transactional_id)
    partition = broker.ask(request, 9).responses[0].partition_responses[0]
    assert partition.error_code == 0
    offset: int = partition.base_offset
    return offset


def fetch(offset: int = 0, topic: str = "t", **fields: Any) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    topics = (FetchTopic(topic=topic, partitions=(partition,)),)
    return FetchRequest(
        replica_id=-1, min_bytes=1, topics=topics, forgotten_topics_data=(), **{"max_wait_ms": 0, **fields}
    )


def produce_as_idempotent(broker: DiskBroker) -> None:
    assert produce(broker, producer_id=7, producer_epoch=0, base_sequence=0) == 25


def check_retention(broker: DiskBroker) -> None:
    state = broker.broker.state
    topic = state.cluster.topics["t"]
    config, _ = retention_config(state.settings.of(1), topic)
    assert at_once(expired_end(topic.partitions[0].data, config, state.clock.now_ms())) == 0


def share_fetch(broker: DiskBroker, max_wait_ms: int = 0, min_bytes: int = 0) -> ShareFetchRequest:
    """Join a share group; return the request that fetches from the end of the topic."""
    topic_id = broker.broker.state.cluster.topics["t"].topic_id
    join = ShareGroupHeartbeatRequest(
        group_id="g", member_id=MEMBER, member_epoch=0, rack_id=None, subscribed_topic_names=("t",)
    )
    assert broker.ask(join, 1).error_code == 0
    partition = SharePartition(partition_index=0, acknowledgement_batches=())
    return ShareFetchRequest(
        group_id="g",
        member_id=MEMBER,
        share_session_epoch=0,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1000,
        max_records=10,
        batch_size=10,
        topics=(ShareTopic(topic_id=topic_id, partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def asks(request: Request, version: int) -> Callable[[DiskBroker], object]:
    return lambda broker: broker.ask(request, version)


MARKER = WritableTxnMarker(
    producer_id=7,
    producer_epoch=0,
    transaction_result=True,
    topics=(WritableTxnMarkerTopic(name="t", partition_indexes=(0,)),),
    coordinator_epoch=0,
)
READERS: dict[str, Callable[[DiskBroker], object]] = {
    "Produce": produce_as_idempotent,
    "Fetch": asks(fetch(), 11),
    "ListOffsets": asks(
        ListOffsetsRequest(
            replica_id=-1,
            topics=(ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(partition_index=0, timestamp=5),)),),
        ),
        5,
    ),
    "DeleteRecords": asks(
        DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=3),)),),
            timeout_ms=1000,
        ),
        2,
    ),
    "OffsetForLeaderEpoch": asks(
        OffsetForLeaderEpochRequest(
            topics=(
                OffsetForLeaderTopic(topic="t", partitions=(OffsetForLeaderPartition(partition=0, leader_epoch=0),)),
            )
        ),
        4,
    ),
    "WriteTxnMarkers": asks(WriteTxnMarkersRequest(markers=(MARKER,)), 1),
    "DescribeProducers": asks(DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0,)),)), 0),
    "ShareFetch": lambda broker: broker.ask(share_fetch(broker), 1),
    "retention": check_retention,
}


@pytest.mark.parametrize("reader", READERS)
def test_the_first_reader_after_a_start_indexes_in_steps(reader: str) -> None:
    broker = broker_with_topic()
    for _ in range(25):
        produce(broker)
    broker.kill()
    with indexed() as counts:
        READERS[reader](broker)
    assert counts[:3] == [10, 10, 5]
    assert not broker.broker.state.log_manager.unindexed or reader == "retention"


LOOKS: dict[str, Callable[[Broker], object]] = {
    "list": lambda broker: broker.topics.list(),
    "describe": lambda broker: broker.topics.describe("t"),
    "records": lambda broker: broker.topics.records("t", limit=1),
    "delete_records": lambda broker: broker.topics.delete_records("t", before_offset=3),
    "expire": lambda broker: broker.topics.expire("t"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_of_a_test_indexes_in_turns_of_the_brokers_thread(look: str, tmp_path: Path) -> None:
    data, clock = str(tmp_path / "data"), "manual"  # no retention check in between
    with Broker(data=data, clock=clock) as broker:
        for _ in range(25):
            broker.topics.produce("t", "v")
    with Broker(data=data, clock=clock) as broker, indexed() as counts:
        called, steps_before_turn = BrokerThread.call, list[int]()

        def turn(thread: BrokerThread, action: Callable[[Server], Any]) -> Any:
            steps_before_turn.append(len(counts))
            return called(thread, action)

        with mock.patch.object(BrokerThread, "call", autospec=True, side_effect=turn):
            LOOKS[look](broker)
    assert counts == [10, 10, 5]
    assert steps_before_turn[:4] == [0, 1, 2, 3]


def test_markers_of_a_loaded_transaction_wait_for_the_steps() -> None:
    broker = broker_with_topic()
    for _ in range(24):
        produce(broker)
    made = broker.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 1)
    topics = (AddPartitionsToTxnTopic(name="t", partitions=(0,)),)
    producer = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    names = {f"v3_and_below_{name}": value for name, value in {**producer, "transactional_id": "x"}.items()}
    broker.ask(AddPartitionsToTxnRequest(**names, v3_and_below_topics=topics), 2)
    produce(broker, transactional_id="x", flags=TRANSACTIONAL, base_sequence=0, **producer)
    broker.kill()
    with indexed() as counts:
        assert broker.ask(EndTxnRequest(transactional_id="x", committed=True, **producer), 2).error_code == 0
        for _ in range(5):
            broker.advance(1)
    assert counts == [10, 10, 5]
    committed = broker.ask(fetch(24, isolation_level=1), 11).responses[0].partitions[0]
    assert (committed.last_stable_offset, committed.high_watermark) == (26, 26)


def commit(broker: DiskBroker) -> None:
    partitions = (OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=""),)
    request = OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=partitions),))
    assert broker.ask(request, 2).topics[0].partitions[0].error_code == 0


def test_the_offsets_topic_is_indexed_in_steps_whenever_it_is_read() -> None:
    """The coordinator writes it, and needs no index."""
    broker = broker_with_topic()
    number = broker.broker.state.coordinator.partition_of("g")
    request = fetch(topic=OFFSETS_TOPIC)
    partition = request.topics[0].partitions[0].replace(partition=number)
    request = request.replace(topics=(request.topics[0].replace(partitions=(partition,)),))
    for _ in range(2):
        for _ in range(25):
            commit(broker)
        with indexed() as counts:
            assert broker.ask(request, 11).responses[0].partitions[0].records
        assert counts == [10, 10, 5]
    broker.kill()
    with indexed() as counts:
        broker.ask(request, 11)
    assert counts == [10] * 5


def stored(broker: DiskBroker) -> StoredData:
    data = broker.broker.state.cluster.topics["t"].partitions[0].data
    assert isinstance(data, StoredData)
    return data


def compacted_broker(reader: Callable[[DiskBroker], object]) -> DiskBroker:
    """Return a broker whose topic is compacted after a reader has indexed it: 25 keys have one batch each."""
    broker = broker_with_topic("3.9", **{"cleanup.policy": "compact", "segment.bytes": "2000"})
    produce(broker, b"obsolete")
    for number in range(24):
        produce(broker, b"%d" % number)
    reader(broker)
    version = stored(broker).log.version
    while stored(broker).log.version == version:
        produce(broker, b"obsolete")
    return broker


def test_the_next_reader_after_a_compaction_indexes_in_steps() -> None:
    broker = compacted_broker(lambda broker: broker.ask(fetch(), 11))
    with indexed() as counts:
        records = broker.ask(fetch(0, max_wait_ms=0), 11).responses[0].partitions[0].records
    assert records
    assert counts[:2] == [10, 10]
    assert max(counts) == STEP


def append_in_flight(broker: DiskBroker) -> None:
    """Append a batch as Produce does that has indexed the partition before its segments were replaced."""
    stored(broker)._settled = 0  # else this append may be the one that indexes twice as many batches
    stored(broker).append(build_record_batch([Record(None, b"v")]), 0, 0, 0)
    broker.persistence.flush()
    broker.persistence.drain()
    broker.run_posted()
    broker.broker.deliver()


def test_a_fetch_that_waits_goes_on_waiting_behind_the_steps() -> None:
    """Kafka's delayed fetch knows no index: it ends with the bytes that it wants, or at its deadline."""
    waiting: list[Any] = []

    def wait(broker: DiskBroker) -> None:
        client = broker.broker.connect()
        client.send(fetch(25, max_wait_ms=60_000).replace(min_bytes=20_000), 11)
        waiting.append(client)

    broker = compacted_broker(wait)
    with indexed() as counts:
        append_in_flight(broker)
        assert counts[:2] == [10, 10]
        assert max(counts) == STEP
        assert not waiting[0].responses
    broker.advance(60_000)
    [response] = waiting[0].responses
    assert response.responses[0].partitions[0].records


def test_a_share_fetch_that_waits_indexes_in_steps() -> None:
    broker = broker_with_topic()
    for _ in range(25):
        produce(broker)
    client = broker.broker.connect()
    client.send(share_fetch(broker, max_wait_ms=60_000, min_bytes=1), 1)
    broker.advance(1)
    assert not client.responses
    log = stored(broker).log
    log.version += 1  # as a compaction that drops nothing of the batches
    assert log.on_compacted is not None
    log.on_compacted()
    with indexed() as counts:
        append_in_flight(broker)
    assert counts == [10, 10, 6]
    [response] = client.responses
    [acquired] = response.responses[0].partitions[0].acquired_records  # type: ignore[attr-defined]
    assert (acquired.first_offset, acquired.last_offset) == (25, 25)
