"""Transactions with a data directory: a restart, and a process that ends anywhere between two writes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.records.batch_header import position_of
from kproto.records.coordinator import encode_key, encode_value
from kproto.records.partitioning import TRANSACTION_TOPIC
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto.records.transaction_state import TransactionLogKey, TransactionLogValue, TransactionStatus
from kproto_server.configuration.data_directory import Durability
from kproto_server.coordinator.offsets_log.batches import keyed_batch
from kproto_server.storage.log_writer import LogWriter
from kproto_server.testing.simulated_disk import Operation
from kproto_server.transactions import coordinator, transitions
from kproto_server.transactions.loading import TransactionLoad
from kproto_server.transactions.transaction import TransactionValues
from tests.persistence.disk_broker import DiskBroker
from tests.robustness.changes import delete_topic, errors_of

SETTINGS = {"transaction.state.log.num.partitions": "2", "auto.create.topics.enable": "true"}
DURABILITIES: list[Durability] = ["fsync", "os"]


class Producer:
    """A producer with the transactional id "a" that also commits an offset of the group "g"."""

    def __init__(self, broker: DiskBroker) -> None:
        self.broker = broker
        for key_type in (0, 1):
            for _ in range(2):
                broker.ask(FindCoordinatorRequest(key="a", key_type=key_type), 2)
        for _ in range(2):
            broker.ask(MetadataRequest(topics=(MetadataRequestTopic(name="t"),), allow_auto_topic_creation=True), 4)
        self.producer_id = self.epoch = -1

    def start(self) -> Any:
        response = self.broker.ask(InitProducerIdRequest(transactional_id="a", transaction_timeout_ms=60_000), 2)
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        return response

    def begin(self, offset: int) -> None:
        added = self.broker.ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="a",
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=(AddPartitionsToTxnTopic(name="t", partitions=(0,)),),
            ),
            2,
        )
        assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
        own: Any = {
            "transactional_id": "a",
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "group_id": "g",
        }
        assert self.broker.ask(AddOffsetsToTxnRequest(**own), 2).error_code == 0
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        committed = self.broker.ask(
            TxnOffsetCommitRequest(**own, topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(partition,)),)), 2
        )
        assert committed.topics[0].partitions[0].error_code == 0

    def end(self, *, commits: bool = True) -> int:
        request = EndTxnRequest(
            transactional_id="a", producer_id=self.producer_id, producer_epoch=self.epoch, committed=commits
        )
        error: int = self.broker.ask(request, 2).error_code
        return error

    def offset(self, *, stable: bool = False) -> tuple[int, int]:
        """Return the offset of the group "g" and its error."""
        topics = (OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)
        response = self.broker.ask(OffsetFetchRequest(group_id="g", topics=topics, require_stable=stable), 7)
        found = response.topics[0].partitions[0]
        return found.committed_offset, found.error_code

    @property
    def values(self) -> TransactionValues:
        return self.broker.broker.state.transactions.transactions["a"].values


def _kill(broker: DiskBroker) -> None:
    """Kill the process when all that it has appended is on the disk, and have the next one do the same."""
    _settle(broker)
    broker.kill()
    _settle(broker)


def _settle(broker: DiskBroker) -> None:
    broker.persistence.flush()
    broker.persistence.drain()


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_goes_on_after_a_restart(durability: Durability, commits: bool) -> None:
    broker = DiskBroker(durability, SETTINGS)
    producer = Producer(broker)
    producer.start()
    producer.begin(5)
    assert producer.end() == 0
    producer.begin(7)
    _kill(broker)
    assert producer.values.status is TransactionStatus.ONGOING
    assert (producer.offset(), producer.offset(stable=True)) == ((5, 0), (-1, 88))
    assert producer.end(commits=commits) == 0
    assert producer.offset(stable=True) == (7 if commits else 5, 0)
    _kill(broker)
    assert producer.offset(stable=True) == (7 if commits else 5, 0)
    assert producer.start().producer_epoch == 1


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("commits", [True, False])
def test_a_decision_in_the_log_is_carried_out_after_a_restart(durability: Durability, commits: bool) -> None:
    """The process ended before the first marker."""
    broker = DiskBroker(durability, SETTINGS)
    producer = Producer(broker)
    producer.start()
    producer.begin(5)
    coordinator = broker.broker.state.transactions
    transaction = coordinator.transactions["a"]
    decided = transitions.prepared(transaction.values, commits=commits, now_ms=broker.broker.clock.now_ms())
    coordinator.log.append(transaction, decided, broker.broker.clock.now_ms())
    _kill(broker)
    assert producer.offset(stable=True) == (5 if commits else -1, 0)
    complete = TransactionStatus.COMPLETE_COMMIT if commits else TransactionStatus.COMPLETE_ABORT
    assert producer.values.status is complete
    assert producer.end(commits=commits) == 0


def test_the_timeout_of_a_transaction_survives_a_damaged_partition() -> None:
    """The error ended the broker. The transaction waits for the partition."""
    broker = DiskBroker("os", SETTINGS)
    producer = Producer(broker)
    producer.start()
    producer.begin(1)
    topic = broker.broker.state.cluster.topics["t"]
    data = broker.broker.state.log_manager.data_of(topic, topic.partitions[0])
    data.append(build_record_batch([Record(b"", b"")]), 0, 0, 0)
    _settle(broker)
    broker.persistence.close()
    file = broker.disk.open("t-0/00000000000000000000.log")
    file.write_at(position_of("batch_length"), bytes(4))
    file.close()
    broker.kill()
    broker.advance(120_000)
    assert producer.values.status is TransactionStatus.PREPARE_ABORT


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("count", range(6))
def test_a_kill_between_two_writes_leaves_a_whole_transaction(
    count: int, commits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EndTxn writes the decision, a marker for the offsets, one for the topic, and the end of the transaction."""
    broker = DiskBroker("os", SETTINGS)
    producer = Producer(broker)
    producer.start()
    producer.begin(5)
    assert producer.end() == 0
    producer.begin(7)
    written = 0
    original = LogWriter.write

    def write(*arguments: Any) -> int:
        nonlocal written
        if written == count:
            raise Killed
        written += 1
        return original(*arguments)

    monkeypatch.setattr(LogWriter, "write", write)
    with suppress(Killed):
        producer.end(commits=commits)
    monkeypatch.undo()
    assert written == min(count, 4)
    _kill(broker)
    if count == 0:  # the decision is not in the log
        assert producer.values.status is TransactionStatus.ONGOING
        assert producer.end(commits=commits) == 0
    outcome = TransactionStatus.COMPLETE_COMMIT if commits else TransactionStatus.COMPLETE_ABORT
    assert producer.values.status is outcome
    assert producer.offset(stable=True) == (7 if commits else 5, 0)
    (partition,) = broker.broker.state.cluster.topics["t"].partitions
    assert not partition.data.transactions.open
    assert producer.end(commits=commits) == 0


def test_the_decision_and_the_markers_share_a_sync() -> None:
    broker = DiskBroker("fsync", SETTINGS)
    producer = Producer(broker)
    producer.start()
    producer.begin(5)
    synced: list[str] = []

    def note(operation: Operation) -> bool:
        if operation.kind == "sync":
            synced.append(operation.path)
        return False

    broker.disk.fails = note
    assert producer.end() == 0
    assert len(synced) == 2, "the second one has the end of the transaction, for which no request waits"


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("commits", [True, False])
def test_without_the_decision_there_are_no_markers(durability: Durability, commits: bool) -> None:
    """The disk refuses the decision; Kafka's TransactionStateManager returns NOT_COORDINATOR then."""
    broker = DiskBroker(durability, SETTINGS)
    producer = Producer(broker)
    producer.start()
    producer.begin(5)
    broker.disk.fails = lambda operation: operation.kind == "write" and operation.path.startswith(TRANSACTION_TOPIC)
    assert producer.end(commits=commits) == ErrorCode.NOT_COORDINATOR
    broker.disk.fails = lambda operation: False
    assert producer.values.status is TransactionStatus.ONGOING
    for _ in range(2):
        assert producer.offset(stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        _kill(broker)
    assert producer.end(commits=commits) == 0
    assert producer.offset(stable=True) == (5 if commits else -1, 0)


def test_an_expired_transactional_id_stays_away() -> None:
    broker = DiskBroker("fsync", SETTINGS)
    producer = Producer(broker)
    producer.start()
    for _ in broker.broker.state.transactions.remove_expired(broker.broker.clock.now_ms() + 604_800_001):
        pass
    _kill(broker)
    assert not broker.broker.state.transactions.transactions


def test_a_transaction_that_is_deleted_between_two_steps_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its topic, which is there again when the task goes on."""
    monkeypatch.setattr(coordinator, "IDS_AT_ONCE", 1)
    broker = DiskBroker("os", SETTINGS)
    Producer(broker).start()
    broker.ask(InitProducerIdRequest(transactional_id="b", transaction_timeout_ms=60_000), 2)
    later = Producer(broker)
    later.start()
    later.begin(5)
    transactions = broker.broker.state.transactions
    transactions.transactions["a"] = transactions.transactions.pop("a")  # the last one
    steps = transactions.abort_timed_out(broker.broker.clock.now_ms() + 60_001)
    next(steps)
    assert not errors_of(broker.ask(*delete_topic(TRANSACTION_TOPIC)))
    Producer(broker)  # its coordinator creates the topic
    for _ in steps:
        pass
    _kill(broker)
    assert not broker.broker.state.transactions.transactions


def test_a_record_with_an_unknown_status_fails_the_load_of_its_partition() -> None:
    key = encode_key(TransactionLogKey(transactional_id="a"))
    value = encode_value(
        TransactionLogValue(
            producer_id=1,
            producer_epoch=0,
            transaction_timeout_ms=1000,
            transaction_status=9,
            transaction_partitions=None,
            transaction_last_update_timestamp_ms=0,
            transaction_start_timestamp_ms=0,
        ),
        0,
    )
    load = TransactionLoad([keyed_batch(key, value, 0)])
    while not load.step():
        pass
    assert load.failed is not None
    assert load.failed.endswith("unknown value 9")
