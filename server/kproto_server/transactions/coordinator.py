"""The transaction coordinator of all nodes: transactional ids, and what each request does to them.

Theory of operation. The leader of a transactional id's partition of `__transaction_state` coordinates it; all nodes of
a process share the state, as the brokers of a real cluster replicate that topic. A request makes a transition
(`transitions`), which is appended to the log (`transaction_log`) and applied once the log has it. EndTxn decides the
transaction; `ending` writes the markers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.declaration import STRING_SIZE_MAX
from kproto.errors import StringTooLong
from kproto.records.transaction_state import TransactionStatus
from kproto_server.cluster.features import TRANSACTION_VERSION
from kproto_server.transactions import transitions
from kproto_server.transactions.ending import Outcome, TransactionEnding
from kproto_server.transactions.transaction import Transaction
from kproto_server.transactions.transaction_log import TransactionLog
from kproto_server.transactions.transitions import EPOCH_FOR_EACH_TRANSACTION, ProducerIdAndEpoch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from kproto_server.cluster.cluster import Cluster
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.transactions.transaction import TopicPartition, TransactionValues
    from kproto_server.transactions.version_behavior import TransactionBehavior

IDS_AT_ONCE = 1000
"""Transactional ids that a task checks in one step."""
PRODUCE_ADDS_PARTITIONS_SINCE = 12
"""The version of Produce that does what AddPartitionsToTxn does."""
PRODUCE_KNOWS_ABORTABLE_SINCE = 11
"""The version of Produce whose clients know TRANSACTION_ABORTABLE."""


class TransactionCoordinator:
    """Transactional ids, and the requests that change them."""

    def __init__(
        self,
        behavior: TransactionBehavior,
        settings: DynamicSettings,
        cluster: Cluster,
        groups: GroupCoordinator,
        log_manager: LogManager,
    ) -> None:
        self.behavior: TransactionBehavior = behavior
        self.settings: DynamicSettings = settings
        self.transactions: dict[str, Transaction] = {}
        """By transactional id."""
        self.log: TransactionLog = TransactionLog(settings, cluster, groups, log_manager)
        self.ending: TransactionEnding = TransactionEnding(self.transactions, self.log, cluster, groups, log_manager)
        self._cluster = cluster
        self._groups = groups

    def get(self, transactional_id: str) -> Transaction | None:
        """Return a transactional id; if the cluster has changed, first finish transactions that wait for leaders."""
        self.ending.finish_after_change()
        return self.transactions.get(transactional_id)

    # Requests. Each returns an outcome, complete when the log has settled everything appended so far.

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None, now_ms: int
    ) -> Outcome:
        """Give a producer its id and epoch; first abort the transaction of the producer before it.

        Raises:
            StringTooLong: the transactional id does not fit a record.
        """
        transaction = self.get(transactional_id)
        if transaction is None:
            # Malformed bytes became replacement characters. In memory no record is written until a client reads them.
            size = len(transactional_id.encode())
            if size > STRING_SIZE_MAX:
                raise StringTooLong("transactional_id", f"{size} bytes, {STRING_SIZE_MAX} is the most")
            values = transitions.new_values(self._cluster.new_producer_id(), timeout_ms, now_ms)
            transaction = self.transactions[transactional_id] = Transaction(transactional_id, values)
        values = transaction.values
        if values.status is TransactionStatus.ONGOING and transaction.pending is None:
            if expected is not None and expected.producer_id != values.producer_id:
                return Outcome(ErrorCode.PRODUCER_FENCED)
            self._abort(transaction, now_ms)
            return Outcome(ErrorCode.CONCURRENT_TRANSACTIONS)
        made = transitions.new_producer(
            transaction,
            timeout_ms,
            expected,
            self._cluster.new_producer_id,
            now_ms,
            keeps_start=self.behavior.keeps_start_of_last_transaction,
        )
        return self._transit(transaction, made, now_ms)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        now_ms: int,
        client_version: int = 0,
    ) -> Outcome:
        """Add partitions to a producer's transaction. ``client_version``: the `transaction.version` of the client."""
        transaction = self.get(transactional_id)
        if transaction is None:
            return Outcome(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        made = transitions.with_partitions(transaction, producer, partitions, client_version, now_ms)
        return self._transit(transaction, self._supported(made), now_ms)

    def verify(self, transactional_id: str, producer: ProducerIdAndEpoch, partition: TopicPartition) -> ErrorCode:
        """Return NONE if a partition is part of a producer's transaction, or why it is not."""
        transaction = self.get(transactional_id)
        if transaction is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        error = transitions.verify(transaction, producer, partition)
        return self.behavior.unverified_error if error is ErrorCode.TRANSACTION_ABORTABLE else error

    def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, commits: bool, client_version: int, now_ms: int
    ) -> Outcome:
        """Commit or abort a producer's transaction. The outcome has the id and epoch of the next one."""
        transaction = self.get(transactional_id)
        if transaction is None:
            return Outcome(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        made = self._supported(
            transitions.ended(
                transaction,
                producer,
                commits=commits,
                client_version=client_version,
                new_producer_id=self._cluster.new_producer_id,
                now_ms=now_ms,
            )
        )
        if isinstance(made, ErrorCode):
            return Outcome(made, transaction.values)
        outcome = self.ending.decide(transaction, made, now_ms)
        if client_version >= EPOCH_FOR_EACH_TRANSACTION:
            outcome.values = transitions.completed(made, now_ms)
        return outcome

    def join(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partition: TopicPartition, *, adds: bool
    ) -> ErrorCode:
        """Return NONE if a partition is part of a producer's transaction, or why it is not, wherever its coordinator is
        (KIP-890). ``adds``: the partition becomes part of it."""
        error = self.log.error_at_leader(transactional_id)
        if error:
            return error
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        if adds:
            now_ms = self._groups.clock.now_ms()
            added = self.add_partitions(transactional_id, producer, (partition,), now_ms, EPOCH_FOR_EACH_TRANSACTION)
            error = ErrorCode(added.error)
        else:
            error = self.verify(transactional_id, producer, partition)
        return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error

    def ongoing(self, transactional_id: str | None, producer_id: int, producer_epoch: int) -> frozenset[TopicPartition]:
        """Return the partitions for which `verify_for_produce` returns NONE and changes nothing."""
        if not transactional_id or self.log.error_at_leader(transactional_id):
            return frozenset()
        transaction = self.get(transactional_id)
        if transaction is None:
            return frozenset()
        values, pending = transaction.added_to, transaction.pending
        is_ongoing = values.status is TransactionStatus.ONGOING and (pending is None or pending is values)
        is_producer = values.producer_id == producer_id and values.epoch == producer_epoch
        return values.partitions if is_ongoing and is_producer else frozenset()

    def verify_for_produce(
        self,
        transactional_id: str | None,
        producer_id: int,
        producer_epoch: int,
        topic: str,
        partition: int,
        api_version: int,
    ) -> ErrorCode:
        """Return NONE if a producer may begin its transaction in a partition (KIP-890)."""
        producer = ProducerIdAndEpoch(producer_id, producer_epoch)
        adds = api_version >= PRODUCE_ADDS_PARTITIONS_SINCE
        error = self.join(transactional_id or "", producer, (topic, partition), adds=adds)
        if error is ErrorCode.TRANSACTION_ABORTABLE and api_version < PRODUCE_KNOWS_ABORTABLE_SINCE:
            return ErrorCode.INVALID_TXN_STATE
        return error

    def _supported(self, made: TransactionValues | ErrorCode) -> TransactionValues | ErrorCode:
        """Return the result of a transition, or UNSUPPORTED_VERSION: with `transaction.version` 0, records cannot have
        the version of the client (measured on all releases from 4.0.0 to 4.4.0).

        DEVIATION: the transactional id of a real broker gets CONCURRENT_TRANSACTIONS from then on.
        """
        if isinstance(made, ErrorCode) or not made.client_version or self._cluster.features.level(TRANSACTION_VERSION):
            return made
        return ErrorCode.UNSUPPORTED_VERSION

    # Tasks.

    def abort_timed_out(self, now_ms: int) -> Iterator[None]:
        """Abort the transactions that are open for longer than their timeout, and fence their producers, in steps."""
        for transaction in self._in_steps():
            if transaction is None:
                yield
            elif transitions.has_timed_out(transaction.values, now_ms):
                self._abort(transaction, now_ms)

    def remove_expired(self, now_ms: int) -> Iterator[None]:
        """Remove transactional ids that were not used for `transactional.id.expiration.ms`, in steps."""
        before_ms = now_ms - self.settings.current.int("transactional.id.expiration.ms")
        for transaction in self._in_steps():
            if transaction is None:
                yield
            elif transitions.has_expired(transaction.values, before_ms):
                self._remove(transaction, now_ms)

    def _in_steps(self) -> Iterator[Transaction | None]:
        """Yield the transactions that no change is pending for; None after each step, between two of which they, or
        their topic, may be deleted."""
        for number, transaction in enumerate(list(self.transactions.values()), 1):
            if transaction.pending is None and self.transactions.get(transaction.transactional_id) is transaction:
                yield transaction
            if number % IDS_AT_ONCE == 0:
                yield None

    def loaded(self, transactions: Collection[Transaction]) -> None:
        """Take the transactional ids of a partition that was loaded; `ending` goes on with what was decided."""
        for transaction in transactions:
            self.transactions[transaction.transactional_id] = transaction
            self.ending.resume(transaction)

    def restore(self, values: Mapping[str, TransactionValues], now_ms: int) -> None:
        """Write transactional ids, and go on with what was decided."""
        for transactional_id, one in values.items():
            self.log.write(transactional_id, one, now_ms)
        self.loaded([Transaction(transactional_id, one) for transactional_id, one in values.items()])
        self.ending.finish(now_ms)

    def make_readable(self, now_ms: int) -> Iterator[None]:
        """Return the steps after which `__transaction_state` has its records, because a client reads it."""
        return self.log.make_readable(self.transactions, now_ms)

    def forget(self) -> None:
        """Drop all transactional ids: their topic was deleted, or the broker is reset."""
        self.transactions.clear()
        self.ending.forget()
        self.log.forget()

    def _transit(self, transaction: Transaction, made: TransactionValues | ErrorCode, now_ms: int) -> Outcome:
        if isinstance(made, ErrorCode):
            return Outcome(made, transaction.values)
        outcome = Outcome(values=made)

        def settle(error: int) -> None:
            outcome.error = error

        self.log.append(transaction, made, now_ms, settle)
        return outcome

    def _remove(self, transaction: Transaction, now_ms: int) -> None:
        transaction.pending = transaction.values

        def settle(error: int) -> None:
            transaction.pending = None
            if not error and self.transactions.get(transaction.transactional_id) is transaction:
                del self.transactions[transaction.transactional_id]

        self.log.write(transaction.transactional_id, None, now_ms, settle)

    def _abort(self, transaction: Transaction, now_ms: int) -> None:
        """Abort an ongoing transaction, with an epoch that fences its producer."""
        # Measured on 3.9.2, and on 4.4.0 with the levels 1 and 2.
        has_new_epochs = self._cluster.features.level(TRANSACTION_VERSION) >= EPOCH_FOR_EACH_TRANSACTION
        raises_twice = has_new_epochs and self.behavior.aborts_raise_epoch_twice
        may_continue = (has_new_epochs and not raises_twice) or self.behavior.aborted_producers_may_continue
        fenced = transitions.fenced(transaction.values, may_continue=may_continue, epoch_step=2 if raises_twice else 1)
        decided = transitions.prepared(fenced, commits=False, now_ms=now_ms)
        self.ending.decide(transaction, decided, now_ms)
