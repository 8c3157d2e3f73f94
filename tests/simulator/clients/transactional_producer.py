"""A transactional producer: records and offsets in transactions, some of them aborted, and zombies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.simulator.broker import TOPIC, TRANSACTION_TIMEOUT_MS
from tests.simulator.clients.client import GROUP, MOVED, RETRY_MS, TRANSACTION, Steps
from tests.simulator.clients.committer import commit_error
from tests.simulator.clients.producer import RETRIABLE, UNKNOWN, BatchSender

if TYPE_CHECKING:
    from kproto.message import Request

ATTEMPTS = 8
END_ATTEMPTS = 40
RESTARTS = 2
"""How often a producer that was fenced takes an epoch of its own again."""
ZOMBIE_BATCHES = 3
"""Batches that a producer still sends which does not believe that it is fenced."""
FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.PRODUCER_FENCED})


class Fenced(Exception):
    """Another producer has the transactional id, or the coordinator has ended the transaction."""


class Stuck(Fenced):
    """The transaction does not end. Its producer needs a new epoch, and sends nothing before.

    A batch that it sent would be accepted: leaders know of the end of a transaction only by its marker.
    """


class Aborted(Exception):
    """The transaction has to be aborted."""


class TransactionalProducer(BatchSender):
    """Commits four of five transactions."""

    def main(self) -> Steps[None]:
        self.transactional_id = self._name = self.line.text("transactional_id")
        self.group = self.line.text("group")
        self.adds_implicitly = bool(self.line.number("version_2"))
        """Whether the producer uses `transaction.version` 2."""
        if self.adds_implicitly:
            self.produce_version = 12
        self.is_unresolved = False
        """Whether a request of the transaction may still arrive."""
        self._was_unanswered = False
        """Whether a request was given up, and repeated."""
        restarts_left = RESTARTS
        try:
            yield from self._init()
            while not self.finishing:
                try:
                    yield from self._transaction()
                except Fenced as error:
                    if self.line.number("zombie") and not isinstance(error, Stuck):
                        for _ in range(ZOMBIE_BATCHES):
                            yield from self.produce(self.random_partition(), attempts=1)
                    if not restarts_left:
                        return
                    restarts_left -= 1
                    yield self.chance.randrange(1, 300)
                    yield from self._init()
                yield self.chance.randrange(5, 100)
        except Fenced:
            return

    def _ask(self, request: Request, wanted: int, *, drops: bool = False) -> Steps[Any]:
        return (yield from self.ask_coordinator(self._name, TRANSACTION, request, wanted, drops=drops))

    def _ask_until(
        self,
        key: str,
        key_type: int,
        request: Request,
        wanted: int,
        error_of: Any,
        attempts: int,
        *,
        drops: bool = False,
    ) -> Steps[Any]:
        """Send a request until it has a response that is no error to be retried; return the response, or None.

        Raises:
            Fenced: the response says that the producer is fenced.
        """
        for _ in range(attempts):
            response = yield from self.ask_coordinator(key, key_type, request, wanted, drops=drops)
            error = UNKNOWN if response is None else error_of(response)
            self._was_unanswered |= response is None
            if error in FENCED:
                raise Fenced
            if error != UNKNOWN and error not in RETRIABLE:
                return response
            if error in MOVED:
                self.forget_coordinator(key, key_type)
            yield RETRY_MS
        return None

    def _init(self, *, continues: bool = False) -> Steps[None]:
        """Get an epoch; ``continues``: as the producer that has the present one (KIP-360)."""
        request = InitProducerIdRequest(
            transactional_id=self._name,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            producer_id=self.producer_id if continues else -1,
            producer_epoch=self.epoch if continues else -1,
        )
        response = yield from self._ask_until(self._name, TRANSACTION, request, 4, _error_code, END_ATTEMPTS)
        if response is None or response.error_code:
            raise Stuck
        self.begin_epoch(response.producer_id, response.producer_epoch)
        self.is_unresolved = False

    def _transaction(self) -> Steps[None]:
        self._has_added = False
        commits = self.chance.random() < 0.8
        try:
            yield from self._write()
        except Aborted:
            commits = False
        if self._has_added:
            yield from self._end(commits=commits)
        if self.is_unresolved and not self.adds_implicitly:
            yield from self._init(continues=True)

    def _write(self) -> Steps[None]:
        count = self.surroundings.partition_count
        partitions = sorted(self.chance.sample(range(count), self.chance.randint(1, min(2, count))))
        if not self.adds_implicitly:
            yield from self._add_partitions(partitions)
        for partition in partitions:
            for _ in range(self.chance.choice((1, 1, 2))):
                self._has_added = True
                error = yield from self.produce(partition)
                if error in FENCED:
                    raise Fenced
                if error:
                    self.is_unresolved = True
                    raise Aborted
        if self.group and self.chance.random() < 0.6:
            yield from self._commit_offsets()

    def _add_partitions(self, partitions: list[int]) -> Steps[None]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=TOPIC, partitions=tuple(partitions)),),
        )
        self._has_added = True
        response = yield from self._ask_until(self._name, TRANSACTION, request, 3, _partition_error, ATTEMPTS)
        if response is None or _partition_error(response):
            self.is_unresolved = True
            raise Aborted

    def _commit_offsets(self) -> Steps[None]:
        if not self.adds_implicitly:
            add = AddOffsetsToTxnRequest(
                transactional_id=self._name,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=self.group,
            )
            self._has_added = True
            response = yield from self._ask_until(self._name, TRANSACTION, add, 3, _error_code, ATTEMPTS)
            if response is None or response.error_code:
                self.is_unresolved = True
                raise Aborted
        partition = TxnOffsetCommitRequestPartition(
            partition_index=self.random_partition(),
            committed_offset=self.surroundings.next_offset(),
            committed_metadata=None,
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self._name,
            group_id=self.group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
        )
        self._has_added, self._was_unanswered = True, False
        wanted = 5 if self.adds_implicitly else 3
        response = yield from self._ask_until(self.group, GROUP, request, wanted, commit_error, ATTEMPTS)
        # Before `transaction.version` 2, a request that was repeated would be accepted in a later transaction, too.
        self.is_unresolved |= self._was_unanswered
        if response is None or commit_error(response):
            self.is_unresolved = True
            raise Aborted

    def _end(self, *, commits: bool) -> Steps[None]:
        """Commit or abort.

        Before `transaction.version` 2, a late EndTxn would end the next transaction: such a client has to know that its
        requests do not arrive after it has given them up.
        """
        request = EndTxnRequest(
            transactional_id=self._name, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commits
        )
        response = yield from self._ask_until(
            self._name,
            TRANSACTION,
            request,
            5 if self.adds_implicitly else 3,
            _error_code,
            END_ATTEMPTS,
            drops=not self.adds_implicitly,
        )
        if response is None or response.error_code:
            raise Stuck
        if self.adds_implicitly:
            self.begin_epoch(response.producer_id, response.producer_epoch)


def _error_code(response: Any) -> int:
    return int(response.error_code)


def _partition_error(response: Any) -> int:
    codes = (
        one.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for one in topic.results_by_partition
    )
    return next((code for code in codes if code), 0)
