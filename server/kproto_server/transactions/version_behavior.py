"""What Kafka releases do differently with transactions."""

from __future__ import annotations

from functools import cached_property

from kproto.codes import ErrorCode
from kproto_server.releases.release import VersionBehavior


class TransactionBehavior(VersionBehavior):
    """The switches of the transaction coordinator."""

    @cached_property
    def fenced_producer_may_continue(self) -> bool:
        """Whether a producer whose transaction was aborted by its own InitProducerId, or by the timeout, may repeat
        InitProducerId with its epoch; before, it gets PRODUCER_FENCED (measured on 3.9.2 and 4.4.0)."""
        return self.at_least(4, 0)

    @cached_property
    def verifies_partitions(self) -> bool:
        """Whether records and offsets of a transaction are refused while their partition is not part of it: from 3.6 on
        (KIP-890 part 1, OC-54; measured on 2.8.2 and 3.9.2)."""
        return self.at_least(3, 6)

    @cached_property
    def has_epoch_for_each_transaction(self) -> bool:
        """Whether clients may use a new epoch for each transaction: `transaction.version` is 2 (KIP-890 part 2)."""
        return self.at_least(4, 0)

    @cached_property
    def internal_topic_error(self) -> ErrorCode:
        """The error of AddPartitionsToTxn for a partition of an internal topic (measured on 0.11.0.3 and 2.8.2)."""
        if self.at_least(1, 0):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    @cached_property
    def fences_old_epochs_of_offsets(self) -> bool:
        """Whether TxnOffsetCommit with an older epoch than an earlier one of the same producer is refused (measured on
        0.11.0.3 and 2.8.2)."""
        return self.at_least(1, 0)

    @cached_property
    def value_version(self) -> int:
        """The version of the values in `__transaction_state`: 1 with `transaction.version` 1 and later."""
        return 1 if self.at_least(4, 0) else 0
