"""The transaction coordinator of all nodes: transactional ids, the log of their changes, and the markers.

Theory of operation. The leader of a transactional id's partition of `__transaction_state` coordinates it; all nodes of
a process share the state, as the brokers of a real cluster replicate that topic. A transition is appended to the log,
and applied once the log has it. EndTxn appends the decision and behind it the markers of all partitions; when the log
has those, the end of the transaction. A crash leaves the beginning of what was appended, so `finish` goes on from the
decision. If the log cannot write the decision, it refuses the markers, too. Real brokers write the markers after the
response to EndTxn; here they are visible when it comes. The end of the transaction is not waited for: without it, a
restart writes the markers again, which changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.errors import StringTooLong
from kproto.records.partitioning import TRANSACTION_TOPIC, partition_for
from kproto.records.transaction_state import TransactionStatus
from kproto_server.cluster.features import TRANSACTION_VERSION
from kproto_server.cluster.topics import NO_LEADER
from kproto_server.log_manager.in_sync_replicas import has_too_few_in_sync
from kproto_server.requests.deferred import NO_RESPONSE
from kproto_server.transactions import transitions
from kproto_server.transactions.marker_writer import MarkerWriter, end_marker
from kproto_server.transactions.transaction import PREPARED, Transaction
from kproto_server.transactions.transitions import EPOCH_FOR_EACH_TRANSACTION, ProducerIdAndEpoch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from kproto_server.clock import Timer
    from kproto_server.cluster.cluster import Cluster, Node
    from kproto_server.cluster.topics import Partition
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.requests.deferred import NoResponse
    from kproto_server.transactions.transaction import TopicPartition, TransactionValues
    from kproto_server.transactions.version_behavior import TransactionBehavior

RETRY_MS = 100
"""How long markers wait that could not be written, as a partition has no leader."""
MARKERS_AT_ONCE = 200
"""Markers that are written in one turn: about 5 ms. Those of larger transactions follow in the next ones."""
IDS_AT_ONCE = 1000
"""Transactional ids that a task checks in one step."""


LOG_ERRORS = {
    int(ErrorCode.NOT_ENOUGH_REPLICAS): int(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    int(ErrorCode.KAFKA_STORAGE_ERROR): int(ErrorCode.NOT_COORDINATOR),
    int(ErrorCode.MESSAGE_TOO_LARGE): int(ErrorCode.UNKNOWN_SERVER_ERROR),
}
"""The errors of requests whose change the log cannot write, by the error of the write."""
PRODUCE_ADDS_PARTITIONS_SINCE = 12
"""The version of Produce that does what AddPartitionsToTxn does."""
FLEXIBLE_VALUES = 1
"""The version of the values in `__transaction_state` with `transaction.version` 1 and later (KIP-890)."""
PRODUCE_KNOWS_ABORTABLE_SINCE = 11
"""The version of Produce whose clients know TRANSACTION_ABORTABLE."""


class Outcome:
    """The outcome of a request whose change the log has to write first."""

    __slots__ = ("error", "values")

    def __init__(self, error: int = 0, values: TransactionValues | None = None) -> None:
        self.error: int = error
        self.values: TransactionValues | None = values


class TransactionCoordinator:
    """Transactional ids, and the log of their changes."""

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
        self.unavailable: dict[int, int] = {}
        """Partitions of `__transaction_state` that are not served, with the error of their transactional ids."""
        self._cluster = cluster
        self._groups = groups
        self._log_manager = log_manager
        self._markers = MarkerWriter(cluster, groups, log_manager)
        self._with_markers: dict[str, None] = {}
        """Transactional ids with markers that the next turns write."""
        self._without_leader: dict[str, None] = {}
        """Transactional ids with markers for partitions without a leader."""
        self._tried_version = -1
        """The version of the cluster at the last attempt to write them."""
        self._timer: Timer | None = None
        """The timer of the next turn."""
        self._is_readable = False
        """Whether a client has read `__transaction_state`, which has records from then on."""

    # Which node coordinates a transactional id.

    def _partition_of(self, transactional_id: str) -> Partition | None:
        """Return the partition of a transactional id in `__transaction_state`; None: there is no such topic."""
        topic = self._cluster.topics.get(TRANSACTION_TOPIC)
        return None if topic is None else topic.partitions[partition_for(transactional_id, len(topic.partitions))]

    def error_at(self, node: Node, transactional_id: str) -> ErrorCode:
        """Return why a node does not coordinate a transactional id; NONE if it does."""
        partition = self._partition_of(transactional_id)
        if partition is None or partition.leader != node.node_id:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode(self.unavailable.get(partition.index, 0)) if self.unavailable else ErrorCode.NONE

    def _error_at_leader(self, transactional_id: str) -> ErrorCode:
        """Return why no node coordinates a transactional id now; NONE if one does."""
        partition = self._partition_of(transactional_id)
        if partition is None or partition.leader == NO_LEADER:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode(self.unavailable.get(partition.index, 0)) if self.unavailable else ErrorCode.NONE

    def get(self, transactional_id: str) -> Transaction | None:
        """Return a transactional id; if the cluster has changed, first finish transactions that wait for leaders."""
        if self._without_leader and self._cluster.version != self._tried_version:
            self.finish(self._groups.clock.now_ms())
        return self.transactions.get(transactional_id)

    # Requests. Each returns an outcome, complete when the log has settled everything appended so far.

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None, now_ms: int
    ) -> Outcome:
        """Give a producer its id and epoch; first abort the transaction of the producer before it."""
        transaction = self.get(transactional_id)
        if transaction is None:
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
        outcome = self._decide(transaction, made, now_ms)
        if client_version >= EPOCH_FOR_EACH_TRANSACTION:
            outcome.values = transitions.completed(made, now_ms)
        return outcome

    def join(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partition: TopicPartition, *, adds: bool
    ) -> ErrorCode:
        """Return NONE if a partition is part of a producer's transaction, or why it is not, wherever its coordinator is
        (KIP-890). ``adds``: the partition becomes part of it."""
        error = self._error_at_leader(transactional_id)
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
        if not transactional_id or self._error_at_leader(transactional_id):
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
        for number, transaction in enumerate(list(self.transactions.values()), 1):
            if transaction.pending is None and transitions.has_timed_out(transaction.values, now_ms):
                self._abort(transaction, now_ms)
            if number % IDS_AT_ONCE == 0:
                yield

    def remove_expired(self, now_ms: int) -> Iterator[None]:
        """Remove transactional ids that were not used for `transactional.id.expiration.ms`, in steps."""
        before_ms = now_ms - self.settings.current.int("transactional.id.expiration.ms")
        for number, transaction in enumerate(list(self.transactions.values()), 1):
            if transaction.pending is None and transitions.has_expired(transaction.values, before_ms):
                self._remove(transaction, now_ms)
            if number % IDS_AT_ONCE == 0:
                yield

    def finish(self, now_ms: int) -> None:
        """Go on with transactions that have markers to be written, for one turn."""
        self._tried_version = self._cluster.version
        self._with_markers |= self._without_leader
        for transactional_id in self._without_leader:
            transaction = self.transactions.get(transactional_id)
            if transaction is not None:
                transaction.markers_left += transaction.markers_without_leader
                transaction.markers_without_leader.clear()
        self._without_leader.clear()
        left = MARKERS_AT_ONCE
        while self._with_markers and left > 0:
            transaction = self.transactions.get(transactional_id := next(iter(self._with_markers)))
            if transaction is None:
                del self._with_markers[transactional_id]
            else:
                left -= 1 + self._write_markers(transaction, transaction.newest, left, now_ms)
        if self._with_markers:
            self._finish_at(now_ms)

    def loaded(self, transactions: Collection[Transaction]) -> None:
        """Take the transactional ids of a partition that was loaded; `finish` goes on with what was decided."""
        for transaction in transactions:
            self.transactions[transaction.transactional_id] = transaction
            if transaction.values.status in PREPARED:
                transaction.markers_left = sorted(transaction.values.partitions, reverse=True)
                self._with_markers[transaction.transactional_id] = None

    def restore(self, values: Mapping[str, TransactionValues], now_ms: int) -> None:
        """Write transactional ids, and go on with what was decided."""
        for transactional_id, one in values.items():
            self._write(transactional_id, one, now_ms, lambda error: None)
        self.loaded([Transaction(transactional_id, one) for transactional_id, one in values.items()])
        self.finish(now_ms)

    def forget(self) -> None:
        """Drop all transactional ids: their topic was deleted, or the broker is reset."""
        self.transactions.clear()
        self._with_markers.clear()
        self._without_leader.clear()
        self.unavailable.clear()
        self._is_readable = False

    def make_readable(self, now_ms: int) -> None:
        """Write the records of a `__transaction_state` in memory, as if the log had just been compacted.

        From then on each change is appended, as on disk. Most brokers of tests are never asked for them.
        """
        if self._log_manager.directory is None and not self._is_readable:
            self._is_readable = True
            for transaction in self.transactions.values():
                self._write(transaction.transactional_id, transaction.values, now_ms, lambda error: None)

    # The log and the markers.

    def _transit(self, transaction: Transaction, made: TransactionValues | ErrorCode, now_ms: int) -> Outcome:
        if isinstance(made, ErrorCode):
            return Outcome(made, transaction.values)
        outcome = Outcome(values=made)

        def settle(error: int) -> None:
            outcome.error = error

        self._append(transaction, made, now_ms, settle)
        return outcome

    def _decide(self, transaction: Transaction, decided: TransactionValues, now_ms: int) -> Outcome:
        """Append the decision to end a transaction, and the markers behind it."""
        outcome = Outcome(values=decided)

        def settle(error: int) -> None:
            outcome.error = error
            if error:  # there are no markers without a decision
                transaction.markers_left = []
                self._with_markers.pop(transaction.transactional_id, None)

        self._append(transaction, decided, now_ms, settle)
        if not outcome.error:
            transaction.markers_left = sorted(decided.partitions, reverse=True)
            transaction.markers_without_leader = []
            self._write_markers(transaction, decided, MARKERS_AT_ONCE, now_ms)
            if transaction.markers_left:
                self._finish_at(now_ms)
        return outcome

    def _append(
        self,
        transaction: Transaction,
        values: TransactionValues,
        now_ms: int,
        on_settled: Callable[[int], object] = lambda error: None,
    ) -> None:
        transaction.pending = values

        def settle(error: int) -> None:
            if not error:
                transaction.values = values
            if transaction.pending is values:
                transaction.pending = None
            on_settled(LOG_ERRORS.get(error, error))

        try:
            self._write(transaction.transactional_id, values, now_ms, settle)
        except StringTooLong:
            transaction.pending = None  # the transactional id does not fit a record; the connection reports the error
            raise

    def _remove(self, transaction: Transaction, now_ms: int) -> None:
        transaction.pending = transaction.values

        def settle(error: int) -> None:
            transaction.pending = None
            if not error and self.transactions.get(transaction.transactional_id) is transaction:
                del self.transactions[transaction.transactional_id]

        self._write(transaction.transactional_id, None, now_ms, settle)

    def _write(
        self, transactional_id: str, values: TransactionValues | None, now_ms: int, settle: Callable[[int], object]
    ) -> None:
        """Append a record, and settle it once the log has it."""
        topic, partition = self._cluster.topics.get(TRANSACTION_TOPIC), self._partition_of(transactional_id)
        if topic is not None and partition is not None and has_too_few_in_sync(self.settings.current, topic, partition):
            settle(ErrorCode.NOT_ENOUGH_REPLICAS)
            return
        if topic is None or partition is None or (self._log_manager.directory is None and not self._is_readable):
            # In memory, the tables are all there is.
            settle(0)
            return
        from kproto_server.coordinator.internal_topics import append_record  # not at the start
        from kproto_server.transactions.records import transaction_batch

        value_version = FLEXIBLE_VALUES if self._cluster.features.level(TRANSACTION_VERSION) >= 1 else 0
        batch = transaction_batch(transactional_id, values, now_ms, value_version)
        append_record(self._log_manager, self._groups.log, topic, partition, batch, now_ms, settle)

    def _abort(self, transaction: Transaction, now_ms: int) -> None:
        """Abort an ongoing transaction, with an epoch that fences its producer."""
        # Measured on 3.9.2, and on 4.4.0 with the levels 1 and 2.
        has_new_epochs = self._cluster.features.level(TRANSACTION_VERSION) >= EPOCH_FOR_EACH_TRANSACTION
        raises_twice = has_new_epochs and self.behavior.aborts_raise_epoch_twice
        fenced = transitions.fenced(
            transaction.values, may_continue=has_new_epochs and not raises_twice, epoch_step=2 if raises_twice else 1
        )
        decided = transitions.prepared(fenced, commits=False, now_ms=now_ms)
        self._decide(transaction, decided, now_ms)

    def _write_markers(self, transaction: Transaction, decided: TransactionValues, limit: int, now_ms: int) -> int:
        """Write at most ``limit`` markers, and end the transaction once the log has the last one; return how many."""
        name, left = transaction.transactional_id, transaction.markers_left
        if not self._keeps_epoch(name):
            transaction.markers_without_leader += left
            left.clear()
        count = min(limit, len(left))
        partitions = left[: -count - 1 : -1]
        del left[len(left) - count :]
        marker = end_marker(decided, self.coordinator_epoch(name))
        self._markers.write(partitions, marker, now_ms, transaction.markers_without_leader)
        if left:
            self._with_markers[name] = None
            return len(partitions)
        self._with_markers.pop(name, None)

        def end() -> NoResponse:
            if transaction.newest is not decided:
                return NO_RESPONSE  # the log could not write the decision
            if transaction.markers_without_leader:
                self._without_leader[name] = None
                self._tried_version = self._cluster.version
                self._finish_at(now_ms + RETRY_MS)
            else:
                self._end(transaction, decided, now_ms)
            return NO_RESPONSE

        self._groups.log.then(end)
        return len(partitions)

    def _keeps_epoch(self, transactional_id: str) -> bool:
        """Keep the coordinator epoch of markers before any log has them; return whether that succeeded.

        After a restart, partitions would refuse the markers of a coordinator with a lower epoch.
        """
        if self._log_manager.directory is None:
            return True
        topic, partition = self._cluster.topics.get(TRANSACTION_TOPIC), self._partition_of(transactional_id)
        if topic is not None and partition is not None:
            try:
                self._log_manager.data_of(topic, partition).begin_epoch(partition.leader_epoch)
            except OSError:
                return False
        return True

    def _end(self, transaction: Transaction, decided: TransactionValues, now_ms: int) -> None:
        """End a transaction whose markers the log has; no request waits for the record that says so.

        If the record is lost, a restart writes the markers again, which changes nothing.
        """
        transaction.values = transitions.completed(decided, now_ms)
        self._write(transaction.transactional_id, transaction.values, now_ms, lambda error: None)

    def _finish_at(self, due_ms: int) -> None:
        """Have the clock call `finish`, at this time at the latest."""
        if self._timer is not None and self._timer.action is not None:
            if self._timer.due_ms <= due_ms:
                return
            self._timer.cancel()
        clock = self._groups.clock
        self._timer = clock.call_at(due_ms, lambda: self.finish(clock.now_ms()), in_background=True)

    def coordinator_epoch(self, transactional_id: str) -> int:
        """Return the leader epoch of a transactional id's partition: markers of older ones are refused."""
        partition = self._partition_of(transactional_id)
        return 0 if partition is None else partition.leader_epoch
