"""Offsets of transactions between TxnOffsetCommit and the marker: other commits, deletions, and `require_stable`."""

from __future__ import annotations

from typing import Any

from kproto.codes import ErrorCode
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k27_write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.records.partitioning import partition_for
from kproto_server.handlers.k09_offset_fetch import SMALL_OFFSETS
from kproto_server.testing.in_memory import InMemoryBroker
from tests.persistence.disk_broker import DiskBroker
from tests.robustness.changes import commit, create_topic

UNSTABLE = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)


class Client:
    """A client of the group "g" that also has transactional producers, by transactional id."""

    def __init__(self, partitions: int = 1) -> None:
        self.broker = InMemoryBroker(topics={"t": partitions})
        for name in ("__transaction_state", "__consumer_offsets"):
            assert self.broker.state.cluster.ensure_internal_topic(name, self.broker.clock.now_ms())
        self.connection = self.broker.connect()
        self.ids: dict[str, tuple[int, int]] = {}

    def commit_in_transaction(self, name: str, offset: int) -> None:
        if name not in self.ids:
            start = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
            started: Any = self.connection.ask(start, 5)
            self.ids[name] = started.producer_id, started.producer_epoch
        producer_id, epoch = self.ids[name]
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=name,
            group_id="g",
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(partition,)),),
        )
        response: Any = self.connection.ask(request, 5)
        assert response.topics[0].partitions[0].error_code == 0

    def end(self, name: str, *, commits: bool = True) -> None:
        producer_id, epoch = self.ids[name]
        request = EndTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=commits)
        response: Any = self.connection.ask(request, 5)
        assert response.error_code == 0
        self.ids[name] = response.producer_id, response.producer_epoch

    def commit(self, offset: int, partitions: int = 1) -> None:
        committed = tuple(
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
            for index in range(partitions)
        )
        request = OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=committed),))
        response: Any = self.connection.ask(request, 5)
        assert response.topics[0].partitions[0].error_code == 0

    def fetch(self, *, stable: bool = False) -> tuple[int, int]:
        """Return the offset of partition 0, and its error."""
        topics = (OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)
        response: Any = self.connection.ask(OffsetFetchRequest(group_id="g", topics=topics, require_stable=stable), 7)
        found = response.topics[0].partitions[0]
        return found.committed_offset, found.error_code


def test_the_order_of_the_commits_decides() -> None:
    """OC-56, BA-105."""
    client = Client()
    client.commit(1)
    client.commit_in_transaction("a", 2)
    client.broker.advance(milliseconds=1)
    client.commit(3)
    client.end("a")
    assert client.fetch() == (3, 0)
    client.commit_in_transaction("a", 4)
    client.end("a")
    assert client.fetch() == (4, 0)


def test_of_two_transactions_the_later_offset_stays() -> None:
    client = Client()
    client.commit_in_transaction("a", 2)
    client.commit_in_transaction("b", 3)
    client.end("a")
    assert (client.fetch(), client.fetch(stable=True)) == ((2, 0), (-1, UNSTABLE))
    client.end("b")
    assert client.fetch(stable=True) == (3, 0)
    client.commit_in_transaction("a", 4)
    client.commit_in_transaction("b", 5)
    client.end("b")
    client.end("a")
    assert client.fetch(stable=True) == (5, 0)


def test_a_repeated_commit_in_the_same_millisecond_does_not_count() -> None:
    client = Client()
    client.commit(1)
    client.commit_in_transaction("a", 2)
    client.commit(1)
    client.end("a")
    assert client.fetch() == (2, 0)


def write_markers(producer_id: int, epoch: int, partition: int) -> WriteTxnMarkersRequest:
    topic = WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=(partition,))
    marker = WritableTxnMarker(
        producer_id=producer_id, producer_epoch=epoch, transaction_result=False, topics=(topic,), coordinator_epoch=0
    )
    return WriteTxnMarkersRequest(markers=(marker,))


def marker_error(response: Any) -> int:
    error: int = response.markers[0].topics[0].partitions[0].error_code
    return error


def test_a_marker_of_an_older_epoch_ends_no_transaction() -> None:
    client = Client()
    start = InitProducerIdRequest(transactional_id="a", transaction_timeout_ms=60_000)
    client.connection.ask(start, 5)
    client.commit_in_transaction("a", 2)
    producer_id, epoch = client.ids["a"]
    topic = client.broker.state.cluster.topics["__consumer_offsets"]
    partition = partition_for("g", len(topic.partitions))
    older = client.connection.ask(write_markers(producer_id, epoch - 1, partition), 1)
    assert marker_error(older) == ErrorCode.INVALID_PRODUCER_EPOCH
    client.end("a")
    assert client.fetch(stable=True) == (2, 0)


def test_a_marker_that_is_not_written_is_an_error() -> None:
    broker = DiskBroker("os")
    broker.ask(FindCoordinatorRequest(key="g", key_type=0), 2)
    broker.disk.fails = lambda operation: operation.kind == "write"
    assert marker_error(broker.ask(write_markers(7, 0, 0), 0)) != 0


def test_the_deletion_of_the_topic_drops_pending_offsets() -> None:
    """LF-34."""
    client = Client()
    client.commit_in_transaction("a", 2)
    client.connection.ask(DeleteTopicsRequest(topic_names=("t",), timeout_ms=1000), 3)
    client.end("a")
    assert client.fetch() == (-1, 0)


def test_the_deletion_of_the_group_drops_pending_offsets() -> None:
    """LF-34."""
    client = Client()
    client.commit_in_transaction("a", 2)
    response: Any = client.connection.ask(DeleteGroupsRequest(groups_names=("g",)), 2)
    assert response.results[0].error_code == 0
    client.end("a")
    assert client.fetch() == (-1, 0)


def test_all_offsets_of_a_group_are_unstable_where_they_may_change() -> None:
    """OF-25, OF-27, in a response that is made in slices, too."""
    for partitions in (2, SMALL_OFFSETS + 1):
        client = Client(partitions)
        client.commit(1, partitions)
        client.commit_in_transaction("a", 2)
        request = OffsetFetchRequest(group_id="g", topics=None, require_stable=True)
        response: Any = client.connection.ask(request, 7)
        found = response.topics[0].partitions
        assert [(one.committed_offset, one.error_code) for one in found[:2]] == [(-1, UNSTABLE), (1, 0)]


def test_a_stable_fetch_waits_for_commits_that_are_being_written() -> None:
    """OF-26."""
    broker = DiskBroker("fsync", kafka_version="4.4")
    broker.ask(FindCoordinatorRequest(key="g"), 1)
    broker.ask(*create_topic("t"))
    broker.ask(*commit("g", {"t": {0: 1}}))
    reader = broker.broker.connect("reader")
    topics = (OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)
    fetch = OffsetFetchRequest(group_id="g", topics=topics)

    def offsets() -> list[int]:
        found: list[Any] = list(reader.responses)
        reader.responses.clear()
        return [response.topics[0].partitions[0].committed_offset for response in found]

    broker.client.send(*commit("g", {"t": {0: 2}}))
    reader.send(fetch, 7)
    assert offsets() == [1]
    reader.send(fetch.replace(require_stable=True), 7)
    assert offsets() == []
    broker.persistence.flush()
    broker.persistence.drain()
    broker.broker.deliver()
    assert offsets() == [2]
