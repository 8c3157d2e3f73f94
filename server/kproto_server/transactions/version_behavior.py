"""What Kafka releases do differently with transactions."""

from __future__ import annotations

from functools import cached_property

from kproto.codes import ErrorCode
from kproto_server.releases.release import VersionBehavior


class TransactionBehavior(VersionBehavior):
    """The switches of the transaction coordinator."""

    @cached_property
    def verifies_offsets(self) -> bool:
        """Whether offsets of a transaction are refused while their partition is not part of it: from 3.7 on (KIP-890
        part 1, OC-54; measured on 3.6.2 and 3.7.2)."""
        return self.at_least(3, 7)

    @cached_property
    def unverified_error(self) -> ErrorCode:
        """The error of a partition that is not part of a transaction (measured on 3.7.2 and 3.9.2)."""
        return ErrorCode.TRANSACTION_ABORTABLE if self.at_least(3, 8) else ErrorCode.INVALID_TXN_STATE

    @cached_property
    def has_client_versions(self) -> bool:
        """Whether a transaction has the `transaction.version` of its client (measured on 4.0.0)."""
        return self.at_least(4, 0)

    @cached_property
    def keeps_start_of_last_transaction(self) -> bool:
        """Whether a transactional id without a transaction has the start of its last one: up to 4.0, where
        TransactionMetadata.completeTransitionTo leaves it for Empty (measured on 3.9.2, 4.0.0 and 4.4.0)."""
        return not self.at_least(4, 1)

    @cached_property
    def internal_topic_error(self) -> ErrorCode:
        """The error of AddPartitionsToTxn for a partition of an internal topic (measured on 0.11.0.3 and 1.1.1)."""
        if self.at_least(1, 0):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    @cached_property
    def aborts_raise_epoch_twice(self) -> bool:
        """Whether an abort by the coordinator raises the epoch by two with `transaction.version` 2, and the producer
        cannot continue (measured on 4.0.0 and 4.0.2)."""
        return self.release == (4, 0, 0)

    @cached_property
    def adds_missing_partitions(self) -> bool:
        """Whether AddPartitionsToTxn takes any partition of a topic that exists (measured on 0.11.0.3, 1.1.1 and
        2.0.1)."""
        return self.at_least(1, 0) and not self.at_least(2, 0)

    @cached_property
    def aborted_producers_may_continue(self) -> bool:
        """Whether a producer whose transaction its own InitProducerId has aborted may repeat the request: in 2.5, where
        TransactionCoordinator.handleEndTransaction keeps its epoch as the last one (measured on 2.5.1)."""
        return self.at_least(2, 5) and not self.at_least(2, 6)

    @cached_property
    def partitions_refuse_old_epochs(self) -> bool:
        """Whether a partition with an open transaction of a producer refuses its older epochs, and the transaction
        coordinator is not asked: in all releases but 4.0 (measured on 3.9.2, 4.0.0 and 4.2.2)."""
        return self.at_least(4, 1) or not self.at_least(4, 0)

    @cached_property
    def fences_old_epochs_of_offsets(self) -> bool:
        """Whether TxnOffsetCommit with an older epoch than an earlier one of the same producer is refused (measured on
        2.3.1 and 2.4.1)."""
        return self.at_least(2, 4)
