"""Requests whose version needs a level of `transaction.version`, and requests while transactional ids are loading."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.message import Request
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k27_write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.k65_describe_transactions import DescribeTransactionsRequest
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.partitioning import OFFSETS_TOPIC, partition_for
from kproto_server.cluster.features import TRANSACTION_VERSION
from kproto_server.observation.error_codes import error_codes
from kproto_server.testing.in_memory import InMemoryBroker
from tests.coordinator.broker_state import commit
from tests.partition_log.conversation_chapters import batch

UNSUPPORTED = [ErrorCode.UNSUPPORTED_VERSION]
REQUESTS = {"produce": (0, 12), "add-v4": (24, 4), "add-v5": (24, 5), "end": (26, 5), "offsets": (28, 5)}


EXPIRATION_CHECK_MS = 600_000


class Producer:
    """A producer with the transactional id "a", the topic "t" and the group "g"."""

    def __init__(self, kafka_version: str = "4.4", level: int = 2) -> None:
        self.broker = InMemoryBroker(kafka_version=kafka_version, topics={"t": 1, "u": 1})
        cluster = self.broker.state.cluster
        for name in ("__transaction_state", "__consumer_offsets"):
            assert cluster.ensure_internal_topic(name, self.broker.clock.now_ms())
        if cluster.features.level(TRANSACTION_VERSION) != level:
            cluster.features.replace({**cluster.features.levels, TRANSACTION_VERSION: level})
        self.sequence = 0
        self.connection = self.broker.connect()
        started: Any = self.connection.ask(
            InitProducerIdRequest(transactional_id="a", transaction_timeout_ms=60_000), 1
        )
        self.producer_id, self.epoch = started.producer_id, started.producer_epoch

    def errors(self, api_key: int, version: int) -> list[int]:
        """Send the request of an API; return the error codes of the response."""
        return error_codes(self.connection.ask(self.request(api_key, version), version))

    def marker_errors(self, producer_id: int, epoch: int) -> list[int]:
        """Write a marker to the partition of the group; return the error codes of the response."""
        offsets = WritableTxnMarkerTopic(name=OFFSETS_TOPIC, partition_indexes=(partition_for("g", 50),))
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            topics=(offsets,),
            coordinator_epoch=0,
        )
        return error_codes(self.connection.ask(WriteTxnMarkersRequest(markers=(marker,)), 0))

    def request(self, api_key: int, version: int) -> Request:
        own = {"producer_id": self.producer_id, "producer_epoch": self.epoch}
        topics = (AddPartitionsToTxnTopic(name="t", partitions=(0,)),)
        match api_key:
            case 0:
                records = batch(base_sequence=self.sequence, flags=TRANSACTIONAL, **own)
                data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=records),))
                return ProduceRequest(transactional_id="a", acks=-1, timeout_ms=1000, topic_data=(data,))
            case 24 if version >= 4:
                transaction = AddPartitionsToTxnTransaction(
                    transactional_id="a", verify_only=False, topics=topics, **own
                )
                return AddPartitionsToTxnRequest(transactions=(transaction,))
            case 24:
                return AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id="a",
                    v3_and_below_producer_id=self.producer_id,
                    v3_and_below_producer_epoch=self.epoch,
                    v3_and_below_topics=topics,
                )
            case 26:
                return EndTxnRequest(transactional_id="a", committed=False, **own)
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
        topic = TxnOffsetCommitRequestTopic(name="t", partitions=(partition,))
        return TxnOffsetCommitRequest(transactional_id="a", group_id="g", topics=(topic,), **own)


@pytest.mark.parametrize("of", REQUESTS)
def test_versions_that_need_a_higher_level_are_unsupported(of: str) -> None:
    """Measured on 4.0.0, 4.0.2, 4.1.2, 4.2.2, 4.3.1 and 4.4.0."""
    producer = Producer(level=0)
    assert producer.errors(*REQUESTS[of]) == UNSUPPORTED
    assert producer.errors(24, 3) == []
    if of != "end":
        # What is part of the transaction already needs no record.
        expected = UNSUPPORTED if of == "offsets" else []
        assert producer.errors(*REQUESTS[of]) == expected
    assert producer.errors(26, 5) == UNSUPPORTED
    assert producer.errors(26, 4) == []


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("of", REQUESTS)
def test_versions_are_supported_from_level_1_on(of: str, level: int) -> None:
    assert Producer(level=level).errors(*REQUESTS[of]) == []


def test_releases_without_levels_support_their_versions() -> None:
    assert Producer("3.9", level=0).errors(24, 4) == []


def test_records_of_a_newer_epoch_do_not_keep_a_transaction_open() -> None:
    producer = Producer("2.8", level=0)
    assert producer.errors(24, 2) == []
    producer.epoch += 1
    assert producer.errors(0, 8) == []
    producer.epoch -= 1
    assert producer.errors(26, 2) == []
    assert producer.errors(24, 2) == []


@pytest.mark.parametrize(
    ("release", "expected"), [("3.7", ErrorCode.INVALID_TXN_STATE), ("3.9", ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_partitions_that_are_no_part_of_a_transaction_are_not_verified(release: str, expected: ErrorCode) -> None:
    """Measured on 3.7.2 and 3.9.2."""
    producer = Producer(release, level=0)
    request: Any = producer.request(24, 4)
    (transaction,) = request.transactions
    request = request.replace(transactions=(transaction.replace(verify_only=True),))
    assert error_codes(producer.connection.ask(request, 4)) == [expected]


@pytest.mark.parametrize(
    ("release", "verifies", "acks", "expected"),
    [
        ("3.6", True, -1, [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2),
        ("3.6", True, 2, [ErrorCode.INVALID_REQUIRED_ACKS] * 2),
        ("3.7", False, -1, []),
        ("3.8", False, 2, [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2),
    ],
)
def test_transactions_of_two_producers_in_one_request(
    release: str, verifies: bool, acks: int, expected: list[int]
) -> None:
    """ReplicaManager.appendRecords up to 3.7, handleProduceAppend from 3.8 on (measured on 3.6.2 and 3.9.2)."""
    producer = Producer(release, level=0)
    current = producer.broker.state.settings.current
    producer.broker.state.settings.current = current.with_assignments(
        [f"transaction.partition.verification.enable={str(verifies).lower()}"]
    )
    data = tuple(
        TopicProduceData(
            name=name,
            partition_data=(
                PartitionProduceData(
                    index=0, records=batch(base_sequence=0, flags=TRANSACTIONAL, producer_id=number, producer_epoch=0)
                ),
            ),
        )
        for number, name in enumerate(("t", "u"))
    )
    request = ProduceRequest(transactional_id="a", acks=acks, timeout_ms=1000, topic_data=data)
    assert error_codes(producer.connection.ask(request, 8)) == expected


@pytest.mark.parametrize(("release", "expected"), [("2.5", []), ("2.6", [ErrorCode.INVALID_PRODUCER_EPOCH])])
def test_a_producer_aborts_its_transaction_and_goes_on(release: str, expected: list[int]) -> None:
    """Measured on 2.5.1 (producers, seed 3005) and 2.8.2."""
    producer = Producer(release, level=0)
    assert producer.errors(24, 1) == []
    init = InitProducerIdRequest(
        transactional_id="a",
        transaction_timeout_ms=60_000,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
    )
    assert error_codes(producer.connection.ask(init, 3)) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert error_codes(producer.connection.ask(init, 3)) == expected


@pytest.mark.parametrize(
    ("release", "expected"),
    [("2.3", []), ("2.4", [ErrorCode.INVALID_PRODUCER_EPOCH]), ("3.6", [ErrorCode.INVALID_PRODUCER_EPOCH])],
)
@pytest.mark.parametrize("has_offsets", [False, True])
def test_offsets_of_a_producer_that_a_marker_has_fenced(
    release: str, expected: list[int], *, has_offsets: bool
) -> None:
    """Measured on 2.8.2 (producers, seed 771008): a marker has the producer's new epoch, and the log refuses the old
    one, until the producer expires."""
    producer = Producer(release, level=0)
    if has_offsets:
        assert producer.errors(28, 2) == []
    assert producer.marker_errors(producer.producer_id, producer.epoch + 1) == []
    assert producer.errors(28, 2) == expected
    if expected:
        assert producer.marker_errors(producer.producer_id, producer.epoch) == expected
    producer.epoch += 1
    assert producer.errors(28, 2) == []


def test_a_fenced_producer_expires() -> None:
    producer = Producer("2.8", level=0)
    assert producer.marker_errors(producer.producer_id, producer.epoch + 1) == []
    producer.broker.advance(days=6)
    assert producer.marker_errors(producer.producer_id + 1, 0) == []
    assert producer.errors(28, 2) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    producer.broker.advance(days=2)
    assert producer.marker_errors(producer.producer_id + 1, 0) == []
    assert producer.errors(28, 2) == []


@pytest.mark.parametrize("deletes_topic", [False, True])
def test_a_transaction_keeps_a_group_whose_offsets_were_all_deleted(deletes_topic: bool) -> None:
    """Up to 3.9 until it ends (OC-57, GroupMetadata.hasOffsets; measured on 2.5.1, 2.8.2 and 3.6.2)."""
    producer = Producer("2.8", level=0)
    assert producer.errors(28, 2) == []
    partition = OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequestTopic(name="t", partitions=(partition,))
    delete: Request = OffsetDeleteRequest(group_id="g", topics=(topic,))
    if deletes_topic:
        delete = DeleteTopicsRequest(topic_names=("t",), timeout_ms=1000)
    assert error_codes(producer.connection.ask(delete, 0)) == []
    broker = producer.broker
    assert broker.state.coordinator.group("g") is not None
    broker.clock.advance(EXPIRATION_CHECK_MS)
    assert broker.state.coordinator.group("g") is not None
    assert producer.marker_errors(producer.producer_id, producer.epoch) == []
    assert broker.state.coordinator.group("g") is not None, "until the next check"
    broker.clock.advance(EXPIRATION_CHECK_MS)
    assert broker.state.coordinator.group("g") is None


def test_a_transaction_does_not_keep_a_new_group_with_the_id_of_a_deleted_one() -> None:
    producer = Producer("2.8", level=0)
    assert producer.errors(28, 2) == []
    assert error_codes(producer.connection.ask(DeleteGroupsRequest(groups_names=("g",)), 1)) == []
    coordinator = producer.broker.state.coordinator
    assert coordinator.group("g") is None
    commit(producer.broker.state, "g", {"t": {0: 1}})
    partition = OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequestTopic(name="t", partitions=(partition,))
    assert error_codes(producer.connection.ask(OffsetDeleteRequest(group_id="g", topics=(topic,)), 0)) == []
    assert coordinator.group("g") is None


@pytest.mark.parametrize(("release", "stays"), [("2.8", False), ("3.9", False), ("4.0", True)])
def test_the_deletion_of_a_topic_ends_empty_groups_without_offsets(release: str, *, stays: bool) -> None:
    """Up to 3.9, whichever topics the groups had (GroupMetadataManager.cleanupGroupMetadata; measured on 3.9.2)."""
    producer = Producer(release, level=0)
    coordinator = producer.broker.state.coordinator
    coordinator.groups.create("g", producer.broker.clock.now_ms())
    commit(producer.broker.state, "other", {"t": {0: 1}})
    request = DeleteTopicsRequest(topic_names=("u",), timeout_ms=1000)
    assert error_codes(producer.connection.ask(request, 4)) == []
    assert (coordinator.group("g") is not None) == stays
    assert coordinator.group("other") is not None


def test_a_request_without_transactions_gets_an_empty_response() -> None:
    response: Any = Producer().connection.ask(AddPartitionsToTxnRequest(transactions=()), 5)
    assert (response.error_code, response.results_by_transaction) == (ErrorCode.NONE, ())


@pytest.mark.parametrize(("release", "keeps"), [("3.9", True), ("4.0", True), ("4.1", False), ("4.4", False)])
def test_a_new_producer_keeps_the_start_of_the_last_transaction(release: str, keeps: bool) -> None:
    """TransactionMetadata.completeTransitionTo; measured on 3.9.2, 4.0.0 and 4.4.0."""
    producer = Producer(release, level=0)
    assert producer.errors(24, 3) == []
    init = InitProducerIdRequest(transactional_id="a", transaction_timeout_ms=60_000)
    assert error_codes(producer.connection.ask(init, 4)) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert error_codes(producer.connection.ask(init, 4)) == []
    response: Any = producer.connection.ask(DescribeTransactionsRequest(transactional_ids=("a",)), 0)
    (state,) = response.transaction_states
    assert state.transaction_state == "Empty"
    assert (state.transaction_start_time_ms >= 0) == keeps


@pytest.mark.parametrize(
    ("release", "expected", "makes_group"),
    [
        ("3.6", [], True),
        ("3.7", [ErrorCode.INVALID_TXN_STATE], True),
        ("3.9", [ErrorCode.INVALID_TXN_STATE], True),
        ("4.0", [ErrorCode.INVALID_TXN_STATE], False),
    ],
)
def test_offsets_of_a_transaction_without_them(release: str, expected: list[int], makes_group: bool) -> None:
    """Measured on 3.6.2, 3.7.2, 3.9.2 and 4.0.0; up to 3.9, GroupCoordinator.handleTxnCommitOffsets makes the group
    before the check."""
    producer = Producer(release, level=0)
    assert producer.errors(24, 3) == []
    assert producer.errors(28, 3) == expected
    assert (producer.broker.state.coordinator.group("g") is not None) == makes_group


@pytest.mark.parametrize(
    ("version", "of_no_group", "of_wrong_epochs"),
    [
        (5, ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION),
        (6, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_offsets_of_a_transaction_and_the_epochs_of_members(
    version: int, of_no_group: ErrorCode, of_wrong_epochs: ErrorCode
) -> None:
    """OffsetMetadataManager.validateTransactionalOffsetCommit of 4.4.0; ConsumerGroup.validateOffsetCommit has no look
    at instance ids."""
    producer = Producer()
    topic_id = producer.broker.state.cluster.topics["t"].topic_id

    def errors(member_id: str, epoch: int, instance_id: str | None = None) -> list[int]:
        request: Any = producer.request(28, version)
        topics = tuple(topic.replace(topic_id=topic_id) for topic in request.topics)
        who = {"member_id": member_id, "generation_id_or_member_epoch": epoch, "group_instance_id": instance_id}
        return error_codes(producer.connection.ask(request.replace(topics=topics, **who), version))

    assert errors("m", 3) == [of_no_group]
    join = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    joined: Any = producer.connection.ask(join, 1)
    assert errors("m", joined.member_epoch + 1) == [of_wrong_epochs]
    assert errors("other", joined.member_epoch) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert errors("m", joined.member_epoch, "i") == errors("", -1) == []


def test_offsets_of_a_transaction_whose_metadata_is_too_large_make_the_group() -> None:
    producer = Producer()
    request: Any = producer.request(28, 5)
    (topic,) = request.topics
    (partition,) = topic.partitions
    large = topic.replace(partitions=(partition.replace(committed_metadata="m" * 5000),))
    response = producer.connection.ask(request.replace(topics=(large,)), 5)
    assert error_codes(response) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert producer.broker.state.coordinator.group("g") is not None


@pytest.mark.parametrize(("release", "expected"), [("4.0", []), ("4.1", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])])
def test_the_first_sequence_of_a_producer_that_raises_its_epoch(release: str, expected: list[int]) -> None:
    """Measured on 4.0.2 and 4.1.2."""
    producer = Producer(release)
    producer.sequence = 3
    assert producer.errors(0, 12) == expected
    assert Producer(release).errors(0, 12) == []


@pytest.mark.parametrize(
    ("api_key", "version", "expected"),
    [
        (28, 1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (28, 3, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (28, 5, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (0, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (0, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (24, 3, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (26, 4, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_requests_while_transactional_ids_are_loaded(api_key: int, version: int, expected: ErrorCode) -> None:
    producer = Producer()
    transactions = producer.broker.state.transactions
    request = producer.request(api_key, version)
    transactions.forget()
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    transactions.log.unavailable |= dict.fromkeys(range(50), loading)
    assert error_codes(producer.connection.ask(request, version)) == [expected]
