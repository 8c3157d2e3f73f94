"""The transaction coordinator of all nodes: transactional ids, the log of their changes, and the markers.

Theory of operation. The leader of a transactional id's partition of `__transaction_state` coordinates it; all nodes of
a process share the state, as the brokers of a real cluster replicate that topic. A transition is appended to the log,
and applied once the log has it. EndTxn appends the decision, the markers of all partitions and the end of the
transaction behind each other: the log settles them in this order, so a crash leaves a prefix, from which `finish` goes
on. Real brokers write the markers after the response to EndTxn; here they are visible when it comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.errors import StringTooLong
from kproto.records.partitioning import OFFSETS_TOPIC, partition_for
from kproto.records.transaction_state import TransactionStatus
from kproto_server.cluster.topics import NO_LEADER, TRANSACTION_TOPIC
from kproto_server.coordinator.change_log import STORAGE_ERROR
from kproto_server.requests.deferred import NO_RESPONSE
from kproto_server.transactions import transitions
from kproto_server.transactions.transaction import PREPARED, Transaction
from kproto_server.transactions.transitions import EPOCH_FOR_EACH_TRANSACTION, ProducerIdAndEpoch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from kproto_server.clock import Timer
    from kproto_server.cluster.cluster import Cluster, Node
    from kproto_server.cluster.topics import Partition
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.partition_log.log_manager import LogManager
    from kproto_server.requests.deferred import NoResponse
    from kproto_server.transactions.transaction import TopicPartition, TransactionValues
    from kproto_server.transactions.version_behavior import TransactionBehavior

RETRY_MS = 100
"""How long markers wait that could not be written, as a partition has no leader."""
MARKERS_AT_ONCE = 200
"""Markers that are written in one turn: about 5 ms. Those of larger transactions follow in the next ones."""
IDS_AT_ONCE = 1000
"""Transactional ids that a task checks in one step."""


PRODUCE_ADDS_PARTITIONS_SINCE = 12
"""The version of Produce that does what AddPartitionsToTxn does."""
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
        return ErrorCode(self.unavailable.get(partition.index, 0))

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
        made = transitions.new_producer(transaction, timeout_ms, expected, self._cluster.new_producer_id, now_ms)
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
        return self._transit(transaction, made, now_ms)

    def verify(self, transactional_id: str, producer: ProducerIdAndEpoch, partition: TopicPartition) -> ErrorCode:
        """Return NONE if a partition is part of a producer's transaction, or why it is not."""
        transaction = self.get(transactional_id)
        if transaction is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return transitions.verify(transaction, producer, partition)

    def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, commits: bool, client_version: int, now_ms: int
    ) -> Outcome:
        """Commit or abort a producer's transaction. The outcome has the id and epoch of the next one."""
        transaction = self.get(transactional_id)
        if transaction is None:
            return Outcome(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        made = transitions.ended(
            transaction,
            producer,
            commits=commits,
            client_version=client_version,
            new_producer_id=self._cluster.new_producer_id,
            now_ms=now_ms,
        )
        outcome = self._transit(transaction, made, now_ms)
        if isinstance(made, ErrorCode) or outcome.error:
            return outcome
        self._end(transaction, made, now_ms)
        outcome.values = transitions.completed(made, now_ms)
        return outcome

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
        is_verified = self.settings.current.bool("transaction.partition.verification.enable")
        if not (self.behavior.verifies_partitions and is_verified):
            return ErrorCode.NONE
        name, producer, of = transactional_id or "", ProducerIdAndEpoch(producer_id, producer_epoch), (topic, partition)
        if api_version >= PRODUCE_ADDS_PARTITIONS_SINCE:
            now_ms = self._groups.clock.now_ms()
            error = ErrorCode(self.add_partitions(name, producer, (of,), now_ms, EPOCH_FOR_EACH_TRANSACTION).error)
        else:
            error = self.verify(name, producer, of)
        if error is ErrorCode.TRANSACTION_ABORTABLE and api_version < PRODUCE_KNOWS_ABORTABLE_SINCE:
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error

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
                transaction.markers_without_leader = []
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
            on_settled(error)

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
        if topic is None or partition is None or (self._log_manager.directory is None and not self._is_readable):
            # In memory, the tables are all there is.
            settle(0)
            return
        from kproto_server.transactions.records import transaction_batch  # not at the start

        try:
            data = self._log_manager.data_of(topic, partition)
            batch = transaction_batch(transactional_id, values, now_ms, self.behavior)
            append = data.append(batch, 0, now_ms, partition.leader_epoch)
        except OSError:
            settle(STORAGE_ERROR)
            return
        if data.is_in_memory:
            self._log_manager.wrote_to_memory(len(batch))

        def settled() -> NoResponse:
            settle(append.error)
            return NO_RESPONSE

        self._groups.log.then(settled)

    def _abort(self, transaction: Transaction, now_ms: int) -> None:
        """Abort an ongoing transaction, with an epoch that fences its producer."""
        fenced = transitions.fenced(transaction.values, self.behavior)
        decided = transitions.prepared(fenced, commits=False, now_ms=now_ms)
        if not self._transit(transaction, decided, now_ms).error:
            self._end(transaction, decided, now_ms)

    def _end(self, transaction: Transaction, decided: TransactionValues, now_ms: int) -> None:
        """Write the markers, and behind them the end of the transaction."""
        transaction.markers_left = sorted(decided.partitions, reverse=True)
        self._write_markers(transaction, decided, MARKERS_AT_ONCE, now_ms)
        if transaction.markers_left:
            self._finish_at(now_ms)

    def _write_markers(self, transaction: Transaction, decided: TransactionValues, limit: int, now_ms: int) -> int:
        """Write at most ``limit`` markers, and the end of the transaction behind the last one; return how many."""
        name, left = transaction.transactional_id, transaction.markers_left
        count = min(limit, len(left))
        for _ in range(count):
            partition = left.pop()
            if not self._write_marker(partition, transaction, decided, now_ms):
                transaction.markers_without_leader.append(partition)
        if left:
            self._with_markers[name] = None
            return count
        self._with_markers.pop(name, None)
        if transaction.markers_without_leader:
            self._without_leader[name] = None
            self._tried_version = self._cluster.version
            self._finish_at(now_ms + RETRY_MS)
        else:
            self._append(transaction, transitions.completed(decided, now_ms), now_ms)
        return count

    def _finish_at(self, due_ms: int) -> None:
        """Have the clock call `finish`, at this time at the latest."""
        if self._timer is not None and self._timer.action is not None:
            if self._timer.due_ms <= due_ms:
                return
            self._timer.cancel()
        clock = self._groups.clock
        self._timer = clock.call_at(due_ms, lambda: self.finish(clock.now_ms()), in_background=True)

    def _write_marker(
        self, of: TopicPartition, transaction: Transaction, decided: TransactionValues, now_ms: int
    ) -> bool:
        """Write a marker; return whether nothing is left to do in the partition."""
        name, index = of
        topic = self._cluster.topics.get(name)
        partition = topic and topic.partition(index)
        if topic is None or not partition:
            return True  # deleted: there are no records to decide on
        if partition.leader == NO_LEADER:
            return False
        commits = decided.status is TransactionStatus.PREPARE_COMMIT
        producer = ProducerIdAndEpoch(decided.producer_id, decided.epoch)
        coordinator_epoch = self.coordinator_epoch(transaction.transactional_id)
        if name == OFFSETS_TOPIC:
            from kproto_server.coordinator.transactional_offsets import end_offsets  # not at the start

            end_offsets(self._groups, index, *producer, coordinator_epoch, commits=commits, now_ms=now_ms)
            return True
        written = self._log_manager.append_marker(
            topic,
            partition,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            coordinator_epoch=coordinator_epoch,
            commit=commits,
            transaction_version=decided.client_version,
            now_ms=now_ms,
        )
        # As in Kafka, a marker that is refused for its epoch has nothing to end.
        return written is not ErrorCode.KAFKA_STORAGE_ERROR

    def coordinator_epoch(self, transactional_id: str) -> int:
        """Return the leader epoch of a transactional id's partition: markers of older ones are refused."""
        partition = self._partition_of(transactional_id)
        return 0 if partition is None else partition.leader_epoch


__all__ = ["EPOCH_FOR_EACH_TRANSACTION", "Outcome", "ProducerIdAndEpoch", "TransactionCoordinator"]
