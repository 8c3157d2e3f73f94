"""`__transaction_state` as the transaction coordinator writes it, and which node coordinates a transactional id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.records.partitioning import TRANSACTION_TOPIC, partition_for
from kproto_server.cluster.features import TRANSACTION_VERSION
from kproto_server.cluster.topics import NO_LEADER
from kproto_server.log_manager.in_sync_replicas import has_too_few_in_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kproto_server.cluster.cluster import Cluster, Node
    from kproto_server.cluster.topics import Partition
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.transactions.transaction import Transaction, TransactionValues

LOG_ERRORS = {
    int(ErrorCode.NOT_ENOUGH_REPLICAS): int(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    int(ErrorCode.KAFKA_STORAGE_ERROR): int(ErrorCode.NOT_COORDINATOR),
    int(ErrorCode.MESSAGE_TOO_LARGE): int(ErrorCode.UNKNOWN_SERVER_ERROR),
}
"""The errors of requests whose change the log cannot write, by the error of the write."""
FLEXIBLE_VALUES = 1
"""The version of the values in `__transaction_state` with `transaction.version` 1 and later (KIP-890)."""


class TransactionLog:
    """The log of the changes of all transactional ids. The tables of a broker in memory are all there is, until a
    client reads the topic."""

    def __init__(
        self, settings: DynamicSettings, cluster: Cluster, groups: GroupCoordinator, log_manager: LogManager
    ) -> None:
        self.unavailable: dict[int, int] = {}
        """Partitions of `__transaction_state` that are not served, with the error of their transactional ids."""
        self._settings = settings
        self._cluster = cluster
        self._groups = groups
        self._log_manager = log_manager
        self._images: Iterator[None] | None = None
        """Makes the records of `__transaction_state` in memory, in steps; None: no client has read it."""

    # Which node coordinates a transactional id.

    def _partition_of(self, transactional_id: str) -> Partition | None:
        """Return the partition of a transactional id; None: there is no `__transaction_state`."""
        topic = self._cluster.topics.get(TRANSACTION_TOPIC)
        return None if topic is None else topic.partitions[partition_for(transactional_id, len(topic.partitions))]

    def error_at(self, node: Node, transactional_id: str) -> ErrorCode:
        """Return why a node does not coordinate a transactional id; NONE if it does."""
        partition = self._partition_of(transactional_id)
        if partition is None or partition.leader != node.node_id:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode(self.unavailable.get(partition.index, 0)) if self.unavailable else ErrorCode.NONE

    def error_at_leader(self, transactional_id: str) -> ErrorCode:
        """Return why no node coordinates a transactional id now; NONE if one does."""
        partition = self._partition_of(transactional_id)
        if partition is None or partition.leader == NO_LEADER:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode(self.unavailable.get(partition.index, 0)) if self.unavailable else ErrorCode.NONE

    def coordinator_epoch(self, transactional_id: str) -> int:
        """Return the leader epoch of a transactional id's partition: markers of older ones are refused."""
        partition = self._partition_of(transactional_id)
        return 0 if partition is None else partition.leader_epoch

    def keep_epoch(self, transactional_id: str) -> bool:
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

    # The records.

    def append(
        self,
        transaction: Transaction,
        values: TransactionValues,
        now_ms: int,
        on_settled: Callable[[int], object] = lambda error: None,
    ) -> None:
        """Append a transition, which is applied once the log has it. ``on_settled`` gets the error of the request."""
        transaction.pending = values

        def settle(error: int) -> None:
            if not error:
                transaction.values = values
            if transaction.pending is values:
                transaction.pending = None
            on_settled(LOG_ERRORS.get(error, error))

        try:
            self.write(transaction.transactional_id, values, now_ms, settle)
        except Exception:
            transaction.pending = None  # the values do not fit a record; the connection reports the error
            raise

    def write(
        self,
        transactional_id: str,
        values: TransactionValues | None,
        now_ms: int,
        settle: Callable[[int], object] = lambda error: None,
    ) -> None:
        """Append a record, or the tombstone of a transactional id; call ``settle`` with the error once the log has it.

        Raises:
            StringTooLong: the transactional id does not fit a record.
        """
        topic, partition = self._cluster.topics.get(TRANSACTION_TOPIC), self._partition_of(transactional_id)
        if (
            topic is not None
            and partition is not None
            and has_too_few_in_sync(self._settings.current, topic, partition)
        ):
            settle(ErrorCode.NOT_ENOUGH_REPLICAS)
            return
        if topic is None or partition is None or (self._log_manager.directory is None and self._images is None):
            # In memory, the tables are all there is.
            settle(0)
            return
        from kproto_server.coordinator.internal_topics import append_record  # not at the start
        from kproto_server.transactions.records import transaction_batch

        value_version = FLEXIBLE_VALUES if self._cluster.features.level(TRANSACTION_VERSION) >= 1 else 0
        batch = transaction_batch(transactional_id, values, now_ms, value_version)
        append_record(self._log_manager, self._groups.log, topic, partition, batch, now_ms, settle)

    def make_readable(self, transactions: Mapping[str, Transaction], now_ms: int) -> Iterator[None]:
        """Return the steps that write the records of a `__transaction_state` in memory, as if the log had just been
        compacted; several readers share them.

        From now on each change is appended, as on disk. Most brokers of tests are never asked for them.
        """
        if self._log_manager.directory is not None:
            return iter(())
        if self._images is None:
            from kproto_server.coordinator.internal_topics import written_in_steps  # not at the start

            def write(transactional_id: str) -> None:
                if transactional_id in transactions:
                    self.write(transactional_id, transactions[transactional_id].values, now_ms)

            self._images = written_in_steps(list(transactions), write)
        return self._images

    def forget(self) -> None:
        """Note that the topic has no records any more."""
        self.unavailable.clear()
        self._images = None
