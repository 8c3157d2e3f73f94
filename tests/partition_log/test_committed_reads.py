"""The isolation level read_committed: fetches that wait, long logs, markers that are not durable yet (BA-75)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.batches import read_batches
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.log_manager.markers import EndMarker, write_marker
from kproto_server.partition_log.partition_data import INDEX_INTERVAL_BYTES, Append
from kproto_server.testing import InMemoryBroker
from tests.partition_log.conversation_chapters import batch
from tests.persistence.disk_broker import DiskBroker

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

PRODUCER = 7


def produce_request(sequence: int, *, flags: int = TRANSACTIONAL, epoch: int = 0, size: int = 3) -> ProduceRequest:
    encoded = batch(producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence, flags=flags, size=size)
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=encoded),))
    return ProduceRequest(transactional_id="id", acks=-1, timeout_ms=1000, topic_data=(data,))


def error_of(response: Any) -> int:
    return int(response.responses[0].partition_responses[0].error_code)


def fetch_request(offset: int, *, max_wait_ms: int = 0, partition_max_bytes: int = 1 << 20) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
    topic = FetchTopic(topic="t", partitions=(partition,))
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, isolation_level=1, topics=(topic,))


def mark(state: BrokerState, *, commit: bool, epoch: int = 0, transaction_version: int = 0) -> Append | ErrorCode:
    topic = state.cluster.topics["t"]
    marker = EndMarker(PRODUCER, epoch, 0, commit, transaction_version)
    return write_marker(state.log_manager, topic, topic.partitions[0], marker, 0)


def test_a_fetch_waits_for_the_marker_of_a_transaction() -> None:
    broker = InMemoryBroker(kafka_version="3.5", topics={"t": 1})
    consumer, producer = broker.connect("consumer"), broker.connect("producer")
    consumer.send(fetch_request(0, max_wait_ms=60_000), 4)
    assert error_of(producer.ask(produce_request(0), 8)) == 0
    assert not consumer.responses
    mark(broker.state, commit=True)
    broker.deliver()
    (response,) = consumer.responses
    found: Any = response
    (partition,) = found.responses[0].partitions
    assert (partition.last_stable_offset, partition.aborted_transactions) == (2, ())
    assert [one.last_offset for one in read_batches(partition.records)] == [0, 1]


def test_of_a_long_log_only_the_aborted_transactions_near_the_records_are_listed() -> None:
    broker = InMemoryBroker(kafka_version="3.5", topics={"t": 1})
    client = broker.connect()
    count = 40
    for number in range(count):
        assert error_of(client.ask(produce_request(number, size=INDEX_INTERVAL_BYTES // 4), 8)) == 0
        mark(broker.state, commit=False)
    for first in (0, count):
        fetched: Any = client.ask(fetch_request(first, partition_max_bytes=1), 4)
        aborted = [one.first_offset for one in fetched.responses[0].partitions[0].aborted_transactions]
        assert aborted == [first + 2 * number for number in range(len(aborted))]
        assert 1 <= len(aborted) < 8


@pytest.mark.parametrize("commit", [True, False])
def test_the_last_stable_offset_rises_when_the_marker_is_durable(commit: bool) -> None:
    broker = DiskBroker("fsync")
    state = broker.broker.state
    state.cluster.create_topic("t", partition_count=1, replication_factor=1)
    assert error_of(broker.ask(produce_request(0), 8)) == 0
    data = state.cluster.topics["t"].partitions[0].data
    appended = mark(state, commit=commit)
    assert isinstance(appended, Append)
    assert (data.next_offset, data.last_stable_offset) == (1, 0)
    assert not data.producers.has_open_transaction(PRODUCER, 0)
    broker.persistence.flush()
    broker.persistence.drain()
    assert (appended.base_offset, appended.error) == (1, 0)
    assert (data.next_offset, data.last_stable_offset) == (2, 2)
    assert len(data.transactions.aborted_in(0, 2)) == (0 if commit else 1)


def test_a_marker_that_is_not_written_leaves_the_transaction_open() -> None:
    """The coordinator writes the marker again, with the same epoch."""
    broker = DiskBroker("os")
    state = broker.broker.state
    state.cluster.create_topic("t", partition_count=1, replication_factor=1)
    for sequence in range(2):
        assert error_of(broker.ask(produce_request(sequence), 8)) == 0
    broker.disk.fails = lambda operation: operation.kind == "write"
    failed = mark(state, commit=True, epoch=1, transaction_version=2)
    assert isinstance(failed, Append)
    assert failed.error == ErrorCode.KAFKA_STORAGE_ERROR
    assert error_of(broker.ask(produce_request(2), 8)) == ErrorCode.KAFKA_STORAGE_ERROR
    broker.disk.fails = lambda operation: False
    data = state.cluster.topics["t"].partitions[0].data
    assert data.producers.has_open_transaction(PRODUCER, 0)
    assert data.last_stable_offset == 0
    assert error_of(broker.ask(produce_request(2), 8)) == 0
    appended = mark(state, commit=True, epoch=1, transaction_version=2)
    assert isinstance(appended, Append)
    assert (appended.error, data.last_stable_offset) == (0, 4)
    assert mark(state, commit=True) is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("error", "version", "expected", "message"),
    [
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS, "Underlying error: NOT_COORDINATOR"),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS, "CONCURRENT_TRANSACTIONS"),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS, ""),
        (ErrorCode.INVALID_TXN_STATE, 11, ErrorCode.INVALID_TXN_STATE, "Partition was not added to the transaction"),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE, ""),
    ],
)
def test_a_transaction_that_cannot_be_verified_begins_with_an_error(
    error: ErrorCode, version: int, expected: ErrorCode, message: str
) -> None:
    """KIP-890: clients that do not know an error of the coordinator receive one that they retry."""
    broker = InMemoryBroker(kafka_version="4.0", topics={"t": 1})
    asked: list[object] = []

    def verify(*of: object) -> ErrorCode:
        asked.append(of)
        return error if len(asked) == 1 else ErrorCode.NONE

    broker.state.log_manager.verify_transaction = verify
    client = broker.connect()
    refused: Any = client.ask(produce_request(0), version)
    assert error_of(refused) == expected
    assert message in (refused.responses[0].partition_responses[0].error_message or "")
    for sequence in range(2):
        assert error_of(client.ask(produce_request(sequence), version)) == 0
    assert asked == [("id", PRODUCER, 0, "t", 0, version)] * 2


def test_a_transaction_is_verified_before_its_records_are_looked_at() -> None:
    """As on 4.4.0: also before the number of replicas, the acknowledgments, and the kind of topic."""
    broker = InMemoryBroker(kafka_version="4.4", topics={"t": 1})
    client = broker.connect()
    no_coordinator: Any = client.ask(produce_request(0), 12)
    assert error_of(no_coordinator) == ErrorCode.NOT_ENOUGH_REPLICAS
    message = no_coordinator.responses[0].partition_responses[0].error_message
    assert message.endswith("Underlying error: COORDINATOR_NOT_AVAILABLE")
    assert broker.state.cluster.ensure_internal_topic("__transaction_state", broker.clock.now_ms())
    topic = broker.state.cluster.topics["t"]
    for configs in ({}, {"min.insync.replicas": "2"}, {"max.message.bytes": "10"}, {"cleanup.policy": "compact"}):
        topic.configs = configs
        for acks in (-1, 5):
            refused = client.ask(produce_request(0).replace(acks=acks), 11)
            assert error_of(refused) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


MARKER = None
OUT_OF_ORDER = "out of order"


@pytest.mark.parametrize(
    ("batches", "of_0_11", "of_1_0"),
    [
        ([(0, 4), MARKER, (3, 1), (0, 4), (4, 1), (4, 1)], [0, 4, OUT_OF_ORDER, 5, 5], [0, OUT_OF_ORDER, 0, 5, 5]),
        ([(0, 4), MARKER, MARKER, (2, 2), (3, 1)], [0, OUT_OF_ORDER, 5], [0, OUT_OF_ORDER, OUT_OF_ORDER]),
        ([(0, 1), (1, 1), (0, 1), (1, 1), (2, 1)], [0, 1, OUT_OF_ORDER, 1, 2], [0, 1, 0, 1, 2]),
    ],
)
def test_0_11_knows_the_last_batch_only_and_its_last_record_behind_a_marker(
    batches: list[tuple[int, int] | None], of_0_11: list[int | str], of_1_0: list[int | str]
) -> None:
    """Offsets of batches (first sequence, records) and their repetitions, as measured on 0.11.0.3 and 1.0.2."""
    for version, expected in (("0.11", of_0_11), ("1.0", of_1_0)):
        broker = InMemoryBroker(kafka_version=version, topics={"t": 1})
        client, found = broker.connect(), list[int | str]()
        for one in batches:
            if one is MARKER:
                mark(broker.state, commit=False)
                continue
            sequence, count = one
            records = [Record(b"k", b"v", timestamp=1, offset=number) for number in range(count)]
            encoded = build_record_batch(
                records, flags=TRANSACTIONAL, producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence
            )
            data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=encoded),))
            response: Any = client.ask(produce_request(0).replace(topic_data=(data,)), 3)
            is_refused = error_of(response) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            assert is_refused or error_of(response) == 0
            found.append(OUT_OF_ORDER if is_refused else response.responses[0].partition_responses[0].base_offset)
        assert found == expected, version
