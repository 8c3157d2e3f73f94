"""Random transactional producers: the requests of whole transactions, and requests with one or two errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kproto.codes import ErrorCode
from kproto.declaration import Struct
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kproto.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k26_end_txn import EndTxnRequest, EndTxnResponse
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.k61_describe_producers import DescribeProducersRequest, ProducerState, TopicRequest
from kproto.messages.k65_describe_transactions import DescribeTransactionsRequest, TransactionState
from kproto.messages.k66_list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.compression import Compression
from kproto.records.record import Record
from kproto_server.observation.error_codes import error_codes
from tests.differential.batches import Batch
from tests.differential.broker_pair import CLOSED, BuildRequest, ComparedBroker, Difference, Responses
from tests.differential.history import create_topics, topic_fields
from tests.differential.records import NEAR_MS, NOW_MS, RecordHistory
from tests.differential.transactions import FETCH_MIN, is_of_an_old_release
from tests.waiting import wait_until

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "auto.create.topics.enable": "false",
}
TRANSACTIONAL_IDS = 2
FETCH = 1
UNKNOWN = -1
UNUSED, NO_ID = "an unused id", "no id"
"""The names of a producer id that no producer has, and of -1."""
KNOWN_IDS_SINCE = 3
"""The first version of InitProducerId with producer id and epoch."""
BATCHED_SINCE = 4
"""The first version of AddPartitionsToTxn with several transactions."""
NEW_EPOCH_SINCE = 5
"""The first version of EndTxn that raises the epoch."""
TRANSACTION = 1
"""The key type of transactional ids in FindCoordinator."""
BUSY = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
"""Errors while a real broker ends the last transaction: the response to EndTxn precedes the markers (DEVIATIONS)."""


class Known(NamedTuple):
    """What a producer knows of itself."""

    transactional_id: str
    producer: str
    """The name of its producer id."""
    epoch: int


class ProducerHistory(RecordHistory):
    """Producers of two transactional ids, one group, and readers of the topic and of the offsets."""

    def prepare(self) -> None:
        self.topics = {f"t{self.seed}": {}}
        self.topic = next(iter(self.topics))
        self.group = f"g{self.seed}"
        for broker in self.pair.brokers:
            create_topics(broker, {self.topic: (2, {})}, self.versions)
            for key, key_type in ((self.group, 0), (f"a{self.seed}", TRANSACTION)):
                wait_until(lambda find=(broker, key, key_type): _has_coordinator(*find), f"a coordinator of {key}")  # type: ignore[misc]
            broker.note(UNUSED, 987_654_321, is_shown=False)
            broker.note(NO_ID, UNKNOWN, is_shown=False)
        names = [f"{letter}{self.seed}" for letter in "ab"[:TRANSACTIONAL_IDS]]
        self.known = {name: Known(name, UNUSED, 0) for name in names}
        self.next_sequences: dict[tuple[str, int, int], int] = {}
        """By the name of the producer id, epoch and partition."""
        self.verifies = self.release >= (3, 7)
        """Whether brokers refuse records of newer epochs, after which a transaction would never end (DEVIATIONS)."""
        self.client = self.random.choice(["old", "new", "any"])
        """Whether the client raises its epoch with each transaction (KIP-890)."""

    def actions(self) -> dict[Callable[[], None], int]:
        return {
            self.init: 10,
            self.add_partitions: 22,
            self.add_offsets: 8,
            self.commit_offsets: 12,
            self.produce: 22,
            self.end: 22,
            self.fetch_offsets: 6,
            self.fetch: 6,
            self.list_offsets: 3,
            self.describe_transactions: 6,
            self.list_transactions: 3,
            self.describe_producers: 3,
        }

    def version(self, api_key: int, lowest: int = 0) -> int:
        return super().version(api_key, max(lowest, FETCH_MIN) if api_key == FETCH else lowest)

    # -- comparison

    def learn(self, broker: ComparedBroker, slot: int, response: Any) -> None:
        if isinstance(response, (InitProducerIdResponse, EndTxnResponse)) and response.producer_id >= 0:
            name = broker.producers.setdefault(response.producer_id, f"producer {len(broker.producers)}")
            broker.note(name, response.producer_id, is_shown=False)

    def is_allowed(self, difference: Difference) -> bool:
        return is_of_an_old_release(self.release, difference)

    def normalize(self, struct: Struct, fields: dict[str, Any]) -> None:
        if not isinstance(struct, InitProducerIdResponse):  # whose producer id the records family does not compare
            super().normalize(struct, fields)
        match struct:
            case ProducerState() if 0 <= struct.last_timestamp - NOW_MS < NEAR_MS:
                fields["last_timestamp"] = "now"
            case TransactionState():
                fields["transaction_start_time_ms"] = struct.transaction_start_time_ms >= 0
                if struct.error_code:
                    fields["producer_id"] = struct.producer_id  # 0, which is the id of a producer in some brokers
            case ListTransactionsResponse():
                fields["transaction_states"] = [
                    state for state in fields["transaction_states"] if state["transactional_id"] in self.known
                ]

    def ask(self, build: BuildRequest, version: int) -> Responses:
        return self.pair.send_until_idle(0, build, version, _is_busy)

    # -- targets

    def _version(self, api_key: int, new_since: int) -> int:
        """Return a version as this client sends it. ``new_since``: the first one of clients that raise their epoch."""
        low, high = self.versions[api_key]
        if high < new_since or self.client == "any":
            return self.random.randint(low, high)
        return self.random.randint(low, new_since - 1) if self.client == "old" else self.random.randint(new_since, high)

    def _who(self, *, wrong_epochs: bool = True, newer_epochs: bool = True) -> Known:
        known = self.random.choice(list(self.known.values()))
        transactional_id = self.mostly(known.transactional_id, *self.known, "", f"never{self.seed}", percent=97)
        producer = self.mostly(known.producer, UNUSED, *(one.producer for one in self.known.values()), percent=97)
        epoch = self.mostly(known.epoch, known.epoch + newer_epochs, max(0, known.epoch - 1), percent=94)
        if producer != known.producer and not newer_epochs:
            epoch = next((one.epoch for one in self.known.values() if one.producer == producer), 0)
        return Known(transactional_id, producer, epoch if wrong_epochs else known.epoch)

    def _added(self) -> Mapping[str, Sequence[int]]:
        indexes = self.random.choice([(0,), (1,), (0, 1)])
        return self.mostly(  # type: ignore[no-any-return]
            {self.topic: indexes},
            {self.topic: (0, 7)},
            {"nope": (0,)},
            {self.topic: (0,), "nope": (0,)},
            {},
            percent=94,
        )

    # -- requests

    def init(self) -> None:
        version = self.version(22)
        transactional_id = self.random.choice(list(self.known))
        known = self.known[transactional_id]
        timeout_ms = self.mostly(60_000, 0, -1, 900_001, percent=95)
        knows_itself = version >= KNOWN_IDS_SINCE and self.random.random() < 0.5
        expected = self._who() if knows_itself else Known(transactional_id, NO_ID, UNKNOWN)

        def build(broker: ComparedBroker) -> InitProducerIdRequest:
            return InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                producer_id=broker.value(expected.producer),
                producer_epoch=expected.epoch,
            )

        response = self.ask(build, version).real
        if not response.error_code:
            self.known[transactional_id] = known._replace(
                producer=self.pair.brokers[1].producers[response.producer_id], epoch=response.producer_epoch
            )

    def add_partitions(self) -> None:
        version, who, topics = self.version(24), self._who(), _topics(self._added())
        verify_only = self.random.random() < 0.4

        def build(broker: ComparedBroker) -> AddPartitionsToTxnRequest:
            producer_id = broker.value(who.producer)
            if version < BATCHED_SINCE:
                return AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=who.transactional_id,
                    v3_and_below_producer_id=producer_id,
                    v3_and_below_producer_epoch=who.epoch,
                    v3_and_below_topics=topics,
                )
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=who.transactional_id,
                producer_id=producer_id,
                producer_epoch=who.epoch,
                verify_only=verify_only,
                topics=topics,
            )
            return AddPartitionsToTxnRequest(transactions=(transaction,))

        self.ask(build, version)

    def add_offsets(self) -> None:
        version, who = self.version(25), self._who()
        self.ask(
            lambda broker: AddOffsetsToTxnRequest(
                transactional_id=who.transactional_id,
                producer_id=broker.value(who.producer),
                producer_epoch=who.epoch,
                group_id=self.group,
            ),
            version,
        )

    def commit_offsets(self) -> None:
        version, who = self._version(28, 5), self._who(newer_epochs=self.verifies)
        topic = self.mostly(self.topic, "nope", percent=97)
        offsets = {index: self.random.randint(0, 50) for index in self.random.choice([(0,), (1,), (0, 1), (0, 7)])}
        metadata = self.mostly("m", None, "", "m" * 5000, percent=90)
        members = [{"member_id": "m"}, {"generation_id_or_member_epoch": 1}, {"group_instance_id": "i"}]
        member = self.mostly({}, *members, percent=95) if version >= 3 else {}

        def build(broker: ComparedBroker) -> TxnOffsetCommitRequest:
            return TxnOffsetCommitRequest(
                transactional_id=who.transactional_id,
                group_id=self.group,
                producer_id=broker.value(who.producer),
                producer_epoch=who.epoch,
                topics=(
                    TxnOffsetCommitRequestTopic(
                        **topic_fields(broker, topic, by_id=version >= 6),
                        partitions=tuple(
                            TxnOffsetCommitRequestPartition(
                                partition_index=index, committed_offset=offset, committed_metadata=metadata
                            )
                            for index, offset in offsets.items()
                        ),
                    ),
                ),
                **member,
            )

        self.ask(build, version)

    def produce(self) -> None:
        version, who = max(3, self._version(0, 12)), self._who(newer_epochs=self.verifies)
        batches = [self._transactional(who, index) for index in self.random.choice([(0,), (1,), (0, 1)])]

        def build(broker: ComparedBroker) -> ProduceRequest:
            partitions = tuple(
                PartitionProduceData(index=each.partition, records=each.encode(broker)) for each in batches
            )
            topic = TopicProduceData(**topic_fields(broker, self.topic, by_id=version >= 13), partition_data=partitions)
            return ProduceRequest(transactional_id=who.transactional_id, acks=-1, timeout_ms=5000, topic_data=(topic,))

        responses = self.ask(build, version)
        if responses.real is not CLOSED:
            (topic,) = responses.real.responses
            appended = {one.index for one in topic.partition_responses if not one.error_code}
            for batch in batches:
                if batch.partition in appended:
                    key = who.producer, who.epoch, batch.partition
                    self.next_sequences[key] = max(self.next_sequences.get(key, 0), batch.sequence + 1)

    def _transactional(self, who: Known, partition: int) -> Batch:
        sequence = self.next_sequences.get((who.producer, who.epoch, partition), 0)
        record = Record(b"k", b"v%d" % self.random.randint(0, 99), (), NOW_MS, 0)
        sequence = self.mostly(sequence, max(0, sequence - 1), sequence + 1, percent=96)
        return Batch(
            self.topic, partition, (record,), Compression.NONE, TRANSACTIONAL, who.producer, who.epoch, sequence
        )

    def end(self) -> None:
        version = self._version(26, NEW_EPOCH_SINCE)
        # Up to 2.5 a request with a wrong epoch blocks its transactional id (DEVIATIONS).
        who = self._who(wrong_epochs=self.release >= (2, 6))
        commits = self.random.random() < 0.6

        def build(broker: ComparedBroker) -> EndTxnRequest:
            return EndTxnRequest(
                transactional_id=who.transactional_id,
                producer_id=broker.value(who.producer),
                producer_epoch=who.epoch,
                committed=commits,
            )

        response = self.ask(build, version).real
        if response.error_code:
            return
        if version >= NEW_EPOCH_SINCE and who.transactional_id in self.known:
            self.known[who.transactional_id] = Known(
                who.transactional_id, self.pair.brokers[1].producers[response.producer_id], response.producer_epoch
            )
        if version < NEW_EPOCH_SINCE:
            # Repeated until the markers are written, which changes nothing then.
            self.ask(build, version)
        else:
            self._describe_until_ended(who.transactional_id)

    def _describe_until_ended(self, transactional_id: str) -> None:
        request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
        self.pair.send_until_idle(0, lambda broker: request, self.version(65), _is_ending)

    def fetch_offsets(self) -> None:
        version = self.version(9, 1)
        is_stable = version >= 7 and self.random.random() < 0.5
        indexes = (0, 1)

        def build(broker: ComparedBroker) -> OffsetFetchRequest:
            if version < 8:
                old = OffsetFetchRequestTopic(name=self.topic, partition_indexes=indexes)
                return OffsetFetchRequest(group_id=self.group, topics=(old,), require_stable=is_stable)
            new = OffsetFetchRequestTopics(
                **topic_fields(broker, self.topic, by_id=version >= 10), partition_indexes=indexes
            )
            group = OffsetFetchRequestGroup(group_id=self.group, topics=(new,))
            return OffsetFetchRequest(groups=(group,), require_stable=is_stable)

        self.pair.send_until_equal(0, build, version)

    def describe_transactions(self) -> None:
        if self.serves(65):
            request = DescribeTransactionsRequest(transactional_ids=(self._who().transactional_id,))
            self.pair.send_until_idle(0, lambda broker: request, self.version(65), _is_ending)

    def list_transactions(self) -> None:
        if not self.serves(66):
            return
        states = self.mostly((), ("Ongoing",), ("Empty", "CompleteCommit"), ("CompleteAbort",), ("x",), percent=40)
        request = ListTransactionsRequest(state_filters=states, producer_id_filters=())
        self.pair.send_until_equal(0, lambda broker: request, self.version(66))

    def describe_producers(self) -> None:
        if self.serves(61):
            request = DescribeProducersRequest(
                topics=(TopicRequest(name=self._topic(), partition_indexes=(self._partition(),)),)
            )
            self.pair.send(0, lambda broker: request, self.version(61))


def _topics(topics: Mapping[str, Sequence[int]]) -> tuple[AddPartitionsToTxnTopic, ...]:
    return tuple(AddPartitionsToTxnTopic(name=name, partitions=tuple(indexes)) for name, indexes in topics.items())


def _is_busy(response: Any) -> bool:
    return response is not CLOSED and not BUSY.isdisjoint(error_codes(response))


def _is_ending(response: Any) -> bool:
    """Return whether DescribeTransactions shows a transaction whose markers are being written."""
    states = [] if response is CLOSED else response.transaction_states
    return _is_busy(response) or any(one.transaction_state.startswith("Prepare") for one in states)


def _has_coordinator(broker: ComparedBroker, key: str, key_type: int) -> bool:
    request = FindCoordinatorRequest(key=key, key_type=key_type)
    if broker.connection(0).ask(request, 1).error_code:
        return False
    if key_type != TRANSACTION:
        return True
    # A coordinator that loads its log would be busy; one that does not know the id has loaded it.
    probe = EndTxnRequest(transactional_id=key, producer_id=0, producer_epoch=0, committed=True)
    response: Any = broker.connection(0).ask(probe, 0)
    return int(response.error_code) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
