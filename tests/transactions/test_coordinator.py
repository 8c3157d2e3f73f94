"""The transaction coordinator without a network: epochs, timeouts, expiration, stopped nodes, and a reset."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.errors import EncodeError, StringTooLong
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k66_list_transactions import ListTransactionsRequest
from kproto.records.batches import Batch, read_batch
from kproto.records.transaction_state import TransactionStatus
from kproto_server.testing.in_memory import DAY_MS, InMemoryBroker
from kproto_server.transactions import transitions
from kproto_server.transactions.ending import MARKERS_AT_ONCE
from kproto_server.transactions.records import read_transaction
from kproto_server.transactions.transaction import EPOCH_MAX, TransactionValues
from kproto_server.transactions.transitions import ProducerIdAndEpoch

START = InitProducerIdRequest(transactional_id="a", transaction_timeout_ms=60_000)


class Client:
    """A producer with the transactional id "a" and topic "t"."""

    def __init__(self, broker: InMemoryBroker, node_id: int = 1) -> None:
        self.connection = broker.connect(node_id=node_id)
        self.producer_id = self.epoch = -1

    def start(self, **fields: Any) -> Any:
        response: Any = self.connection.ask(START.replace(**fields), 5)
        if not response.error_code:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        return response

    def add(self, *indexes: int) -> int:
        topics = (AddPartitionsToTxnTopic(name="t", partitions=indexes or (0,)),)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="a",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics,
        )
        response: Any = self.connection.ask(request, 3)
        error: int = response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return error

    def end(self, version: int = 4, *, commits: bool = True) -> Any:
        response: Any = self.connection.ask(
            EndTxnRequest(
                transactional_id="a", producer_id=self.producer_id, producer_epoch=self.epoch, committed=commits
            ),
            version,
        )
        if version >= 5 and not response.error_code:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        return response


def new_broker(brokers: int = 1, partitions: int = 2) -> InMemoryBroker:
    broker = InMemoryBroker(topics={"t": partitions}, brokers=brokers)
    assert broker.state.cluster.ensure_internal_topic("__transaction_state", broker.clock.now_ms())
    return broker


def with_producer() -> tuple[InMemoryBroker, Client]:
    broker = new_broker()
    client = Client(broker)
    client.start()
    return broker, client


def values(broker: InMemoryBroker) -> TransactionValues:
    return broker.state.transactions.transactions["a"].values


def with_epoch(broker: InMemoryBroker, epoch: int) -> None:
    transaction = broker.state.transactions.transactions["a"]
    transaction.values = transaction.values._replace(epoch=epoch)


def test_exhausted_epochs_give_a_new_producer_id() -> None:
    broker, client = with_producer()
    first = client.producer_id
    with_epoch(broker, EPOCH_MAX - 1)
    client.start()
    assert (client.producer_id != first, client.epoch) == (True, 0)


def test_a_producer_that_knows_its_exhausted_epoch_may_repeat_the_request() -> None:
    broker, client = with_producer()
    first = client.producer_id
    with_epoch(broker, EPOCH_MAX - 1)
    made = client.start(producer_id=first, producer_epoch=EPOCH_MAX - 1)
    again = client.start(producer_id=first, producer_epoch=EPOCH_MAX - 1)
    assert (made.producer_id, made.producer_epoch) == (again.producer_id, again.producer_epoch)
    assert made.producer_id != first


def test_an_end_with_an_exhausted_epoch_gives_a_new_producer_id() -> None:
    """KIP-890: the markers have the last epoch of the old id."""
    broker, client = with_producer()
    first = client.producer_id
    with_epoch(broker, EPOCH_MAX - 1)
    client.epoch = EPOCH_MAX - 1
    assert client.add() == 0
    assert client.end(5).error_code == 0
    assert (client.producer_id != first, client.epoch) == (True, 0)
    new_id, client.producer_id, client.epoch = client.producer_id, first, EPOCH_MAX - 1
    assert client.end(5).error_code == 0
    assert client.producer_id == new_id


@pytest.mark.parametrize("timeout_ms", [1, 60_000])
def test_a_transaction_is_aborted_after_its_timeout(timeout_ms: int) -> None:
    """BA-106."""
    broker = new_broker()
    client = Client(broker)
    client.start(transaction_timeout_ms=timeout_ms)
    client.add()
    broker.advance(milliseconds=timeout_ms - 1)
    assert values(broker).status is TransactionStatus.ONGOING
    broker.advance(milliseconds=10_001)
    assert values(broker).status is TransactionStatus.COMPLETE_ABORT
    assert client.end().error_code == ErrorCode.PRODUCER_FENCED


def test_unused_transactional_ids_expire() -> None:
    broker, client = with_producer()
    broker.advance(days=6.9)
    assert client.add() == 0
    assert client.end().error_code == 0
    broker.advance(days=6.9)
    assert "a" in broker.state.transactions.transactions
    broker.advance(milliseconds=0.2 * DAY_MS)
    assert not broker.state.transactions.transactions
    assert client.add() == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_transactional_id_that_fits_no_record_is_not_kept() -> None:
    """Malformed bytes become replacement characters of three bytes each."""
    broker = new_broker()
    with pytest.raises(StringTooLong):
        broker.state.transactions.init_producer("\ufffd" * 20_000, 60_000, None, broker.clock.now_ms())
    assert not broker.state.transactions.transactions


def test_a_transaction_ends_when_all_its_partitions_have_a_leader_again() -> None:
    broker = new_broker(brokers=3)
    cluster = broker.state.cluster
    coordinator = cluster.transaction_coordinator_of("a")
    assert coordinator is not None
    client = Client(broker, coordinator.node_id)
    client.start()
    index = next(index for index, one in enumerate(cluster.topics["t"].partitions) if one.leader != coordinator.node_id)
    leader = cluster.topics["t"].partitions[index].leader
    assert client.add(index) == 0
    cluster.stop_node(leader)
    assert client.end().error_code == 0
    assert values(broker).status is TransactionStatus.PREPARE_COMMIT
    assert client.add(index) == ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.start_node(leader)
    broker.advance(milliseconds=100)
    assert values(broker).status is TransactionStatus.COMPLETE_COMMIT
    assert client.add(index) == 0


def test_only_a_repeated_end_waits_for_the_markers() -> None:
    """The source of 4.0 to 4.4 (`isValidEpoch` of `endTransaction`): the next epoch has nothing to end yet."""
    broker = new_broker(brokers=3)
    cluster = broker.state.cluster
    coordinator = cluster.transaction_coordinator_of("a")
    assert coordinator is not None
    client = Client(broker, coordinator.node_id)
    client.start()
    index = next(index for index, one in enumerate(cluster.topics["t"].partitions) if one.leader != coordinator.node_id)
    assert client.add(index) == 0
    cluster.stop_node(cluster.topics["t"].partitions[index].leader)
    assert client.end(5).error_code == 0
    assert client.end(5).error_code == ErrorCode.PRODUCER_FENCED
    client.epoch -= 1
    assert client.end(5).error_code == ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_large_transaction_ends_in_several_turns() -> None:
    broker = new_broker(partitions=3 * MARKERS_AT_ONCE)
    client = Client(broker)
    client.start()
    partitions = broker.state.cluster.topics["t"].partitions
    assert client.add(*range(len(partitions))) == 0
    assert client.end().error_code == 0
    written = sum(partition.data.next_offset for partition in partitions)
    assert (values(broker).status, written) == (TransactionStatus.PREPARE_COMMIT, MARKERS_AT_ONCE)
    assert client.end().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    broker.advance(milliseconds=1)
    assert values(broker).status is TransactionStatus.COMPLETE_COMMIT
    assert {partition.data.next_offset for partition in partitions} == {1}


def test_many_transactions_that_wait_for_a_leader_have_one_timer() -> None:
    broker = new_broker(brokers=3)
    cluster = broker.state.cluster
    partition = cluster.topics["t"].partitions[0]
    cluster.stop_node(partition.leader)
    coordinator = broker.state.transactions
    for number in range(50):
        name = f"id-{number}"
        made = coordinator.init_producer(name, 60_000, None, broker.clock.now_ms()).values
        assert made is not None
        producer = ProducerIdAndEpoch(made.producer_id, made.epoch)
        coordinator.add_partitions(name, producer, [("t", 0)], broker.clock.now_ms())
        coordinator.end(name, producer, commits=True, client_version=0, now_ms=broker.clock.now_ms())
    timers = broker.clock.timers_set
    broker.advance(milliseconds=1000)
    assert broker.clock.timers_set - timers == 10
    cluster.start_node(partition.replicas[0])
    broker.advance(milliseconds=100)
    assert {one.values.status for one in coordinator.transactions.values()} == {TransactionStatus.COMPLETE_COMMIT}


def test_the_topic_can_be_read_in_memory() -> None:
    """A client that reads `__transaction_state` finds the records of transactions before and after."""
    broker, client = with_producer()
    topic = broker.state.cluster.topics["__transaction_state"]
    assert list(broker.state.transactions.make_readable(broker.clock.now_ms())) == []  # no step but the last
    client.add()
    client.end()
    found = [
        read_transaction(record.key, record.value)
        for partition in topic.partitions
        for batch in batches(partition.data.read(0, 1 << 20, min_one_batch=True))
        for record in batch.records()
    ]
    statuses = [one[1].status for one in found if one is not None and one[1] is not None]
    assert statuses == [
        TransactionStatus.EMPTY,
        TransactionStatus.ONGOING,
        TransactionStatus.PREPARE_COMMIT,
        TransactionStatus.COMPLETE_COMMIT,
    ]


def batches(data: bytes) -> Iterator[Batch]:
    position = 0
    while (found := read_batch(data, position)) is not None:
        batch, position = found
        yield batch


def test_the_deletion_of_the_topic_forgets_transactional_ids() -> None:
    broker, client = with_producer()
    names = ("__transaction_state",)
    response: Any = client.connection.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=1000), 3)
    assert [one.error_code for one in response.responses] == [0]
    assert not broker.state.transactions.transactions


def test_a_fenced_producer_with_the_last_epoch_gets_a_new_id() -> None:
    broker, client = with_producer()
    first = client.producer_id
    with_epoch(broker, EPOCH_MAX - 1)
    client.epoch = EPOCH_MAX - 1
    assert client.add() == 0
    again = {"producer_id": first, "producer_epoch": EPOCH_MAX - 1}
    assert client.start(**again).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    made = client.start(**again)
    assert (made.error_code, made.producer_id != first, made.producer_epoch) == (0, True, 0)
    assert client.start(**again).producer_id == made.producer_id


def test_the_greatest_epoch_is_of_no_producer() -> None:
    """It fences a producer whose transaction was aborted. A client that uses it nevertheless is fenced, too."""
    broker, client = with_producer()
    with_epoch(broker, EPOCH_MAX)
    client.epoch = EPOCH_MAX
    assert client.add() == ErrorCode.PRODUCER_FENCED
    for commits in (True, False):
        assert client.end(5, commits=commits).error_code == ErrorCode.PRODUCER_FENCED
    assert (values(broker).status, values(broker).epoch) == (TransactionStatus.EMPTY, EPOCH_MAX)


def test_a_transition_that_fits_no_record_is_dropped() -> None:
    """The transactional id waited for it for good."""
    broker, client = with_producer()
    transaction = broker.state.transactions.transactions["a"]
    before = transaction.values
    list(broker.state.transactions.make_readable(broker.clock.now_ms()))
    with pytest.raises((EncodeError, struct.error)):
        broker.state.transactions.log.append(transaction, before._replace(epoch=EPOCH_MAX + 1), 0)
    assert (transaction.values, transaction.pending) == (before, None)
    assert client.add() == 0


def test_a_node_that_does_not_lead_the_partition_is_no_coordinator() -> None:
    broker = new_broker(brokers=3)
    coordinator = broker.state.cluster.transaction_coordinator_of("a")
    assert coordinator is not None
    other = next(node for node in (1, 2, 3) if node != coordinator.node_id)
    client = Client(broker, other)
    assert client.start().error_code == ErrorCode.NOT_COORDINATOR
    assert client.add() == ErrorCode.NOT_COORDINATOR
    assert client.end().error_code == ErrorCode.NOT_COORDINATOR


def test_a_reset_forgets_transactional_ids() -> None:
    broker, client = with_producer()
    broker.state.reset()
    assert client.end().error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("fences", [False, True])
def test_nothing_joins_a_transaction_whose_decision_the_log_is_writing(fences: bool) -> None:
    """Its markers are in the queue of the log already: what is appended behind them would never end."""
    broker = new_broker()
    client = Client(broker)
    client.start()
    client.add()
    coordinator = broker.state.transactions
    transaction, producer = coordinator.transactions["a"], ProducerIdAndEpoch(client.producer_id, client.epoch)
    assert coordinator.verify("a", producer, ("t", 0)) is ErrorCode.NONE
    decided = transaction.values._replace(epoch=client.epoch + fences)
    transaction.pending = transitions.prepared(decided, commits=not fences, now_ms=0)
    assert coordinator.verify("a", producer, ("t", 0)) is ErrorCode.CONCURRENT_TRANSACTIONS
    transaction.pending = transaction.values._replace(partitions=frozenset({("t", 0), ("t", 1)}))
    assert coordinator.verify("a", producer, ("t", 1)) is ErrorCode.NONE


def test_a_transaction_is_complete_when_its_response_comes() -> None:
    broker, client = with_producer()
    for _ in range(3):
        assert (client.add(), client.end().error_code) == (0, 0)
        assert values(broker).status is TransactionStatus.COMPLETE_COMMIT


def test_transactions_are_listed_by_pattern() -> None:
    _, client = with_producer()
    for pattern, found in (("[ab]", 1), ("b", 0), (None, 1), ("", 1)):
        request = ListTransactionsRequest(state_filters=(), producer_id_filters=(), transactional_id_pattern=pattern)
        response: Any = client.connection.ask(request, 2)
        assert len(response.transaction_states) == found
