"""What Kafka releases do differently with the records of a Produce request."""

from __future__ import annotations

from functools import cached_property

from kproto.codes import ErrorCode
from kproto_server.partition_log.precheck import BATCHES_SINCE, Finding
from kproto_server.releases.release import VersionBehavior

EPOCH_RAISED_SINCE = 12
"""The Produce version from which on a producer has a new epoch for each transaction."""


class ProduceBehavior(VersionBehavior):
    """The switches of Produce."""

    @cached_property
    def waits_below_minimum(self) -> bool:
        """Whether the high watermark does not advance while fewer replicas than min.insync.replicas are in sync
        (KIP-966): a produce with acks=all that was appended before waits until its timeout, instead of
        NOT_ENOUGH_REPLICAS_AFTER_APPEND. From 3.7 on (Partition.scala)."""
        return self.at_least(3, 7)

    @cached_property
    def verifies_transactions(self) -> bool:
        """Whether records of a transaction are refused while their partition is not part of it: from 3.6 on (KIP-890
        part 1, OC-54; measured on 2.8.2 and 3.6.2)."""
        return self.at_least(3, 6)

    @cached_property
    def verifies_before_acks(self) -> bool:
        """Whether a transaction is verified (KIP-890) before the number of acknowledgments, and errors of it have no
        message (measured on 3.6.2 and 3.9.2)."""
        return self.at_least(3, 7)

    @cached_property
    def needs_no_more_in_sync_than_replicas(self) -> bool:
        """Whether a partition whose replicas are all in sync has enough of them, even if `min.insync.replicas` is
        greater: from 3.7 on (measured on 2.8.2, 3.6.2, 3.7.2, 3.9.2 and 4.4.0)."""
        return self.at_least(3, 7)

    @cached_property
    def invalid_records_error(self) -> ErrorCode:
        """The error for records that are not exactly one valid batch: INVALID_RECORD from 2.4 on, CORRUPT_MESSAGE
        before (BA-62; measured on 2.1.1 and 2.8.2)."""
        return ErrorCode.INVALID_RECORD if self.at_least(2, 4) else ErrorCode.CORRUPT_MESSAGE

    def closes_connection(self, finding: Finding, api_version: int) -> bool:
        """Return whether a Produce request with such records closes the connection instead of failing with an error.

        Up to 2.7 that happens if no batch can be read, before 2.1 not for a message set. Before 2.1 it also happens if
        something follows the batch (measured on 2.0.1 and 2.1.1, and on 2.7.2 and 2.8.2).
        """
        if finding in (Finding.SEVERAL, Finding.TRAILING_BYTES):
            return not self.at_least(2, 1)
        has_no_batch = finding in (Finding.NO_BATCH, Finding.UNREADABLE)
        return has_no_batch and not self.at_least(2, 8) and (self.at_least(2, 1) or api_version >= BATCHES_SINCE)

    @cached_property
    def unreadable_records_fail_request(self) -> bool:
        """Whether records that cannot be a batch fail the whole Produce request (measured on 2.7.2 and 2.8.2)."""
        return self.at_least(2, 8)

    def sequence_error(self, error: ErrorCode) -> ErrorCode:
        """Return the error that the release has for a sequence error of an idempotent producer: UNKNOWN_PRODUCER_ID
        exists from 1.0 on (measured on 0.11.0.3 and 1.0.2), and is not used any more where unknown producers are
        refused again (measured on 4.4.0)."""
        is_used = self.at_least(1, 0) and not self.at_least(2, 5)
        is_unknown = error is ErrorCode.UNKNOWN_PRODUCER_ID
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if is_unknown and not is_used else error

    def requires_sequence_zero(self, api_version: int, *, is_transactional: bool) -> bool:
        """Return whether the first batch of an unknown idempotent producer must have sequence 0 (BA-65): up to 2.4, and
        in transactions of producers that raise their epoch from 4.1 on (KIP-890; measured on 4.0.2 and 4.1.2)."""
        is_checked = is_transactional and api_version >= EPOCH_RAISED_SINCE and self.at_least(4, 1)
        return is_checked or not self.at_least(2, 5)

    @cached_property
    def after_marker_error(self) -> ErrorCode:
        """The error for a batch that does not begin at sequence 0 if only a marker of its producer epoch is known
        (measured on 1.1.1, 2.0.1, 2.4.1 and 2.5.1)."""
        is_unknown = self.at_least(2, 0) and not self.at_least(2, 5)
        return ErrorCode.UNKNOWN_PRODUCER_ID if is_unknown else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @cached_property
    def knows_only_last_batch(self) -> bool:
        """Whether only the last batch of an idempotent producer is known when one is repeated
        (`ProducerState.known_batches`; measured on 0.11.0.3 and 1.0.2)."""
        return not self.at_least(1, 0)

    @cached_property
    def checks_acks_before_partitions(self) -> bool:
        """Whether an invalid ``acks`` value is reported before a partition that does not exist (measured on 1.1.1 and
        2.0.1)."""
        return not self.at_least(2, 0)

    @cached_property
    def refuses_transactions_without_id(self) -> bool:
        """Whether transactional records in a request without transactional id are refused (measured on 2.0.1 and
        2.1.1)."""
        return self.at_least(2, 1)

    @cached_property
    def refuses_several_transactions(self) -> bool:
        """Whether transactional records of several producers fail the whole request (measured on 2.8.2, 3.9.2 and
        4.4.0; verification exists from 3.6 on)."""
        return self.at_least(3, 6)

    @cached_property
    def looks_for_several_transactions_first(self) -> bool:
        """Whether that is the first check of all, with or without `transaction.partition.verification.enable`: from
        3.8 on, where ReplicaManager.handleProduceAppend makes it (measured on 3.6.2 and 3.9.2)."""
        return self.at_least(3, 8)

    @cached_property
    def supports_zstd(self) -> bool:
        """Whether records may be compressed with zstd; an unknown codec is an error of its own (KIP-110; measured on
        2.0.1 and 2.1.1)."""
        return self.at_least(2, 1)

    @cached_property
    def renumbers_compressed_records(self) -> bool:
        """Whether a compressed batch whose offset deltas do not count from 0 is accepted and rebuilt, instead of
        UNKNOWN_SERVER_ERROR (measured on 2.3.1 and 2.8.2)."""
        return not self.at_least(2, 4)

    @cached_property
    def refuses_mixed_message_sets(self) -> bool:
        """Whether a message set of two magics is refused, and one of several messages of which one is compressed
        (measured on 2.3.1 and 2.4.1)."""
        return self.at_least(2, 4)

    @cached_property
    def clears_append_time(self) -> bool:
        """Whether a batch whose producer says that the broker has set the timestamps is stored without this attribute,
        instead of INVALID_TIMESTAMP: from 3.6 on, unless the topic has append time (measured on 2.8.2, 3.9.2 and 4.4.0;
        LogValidator.validateTimestamp)."""
        return self.at_least(3, 6)

    @cached_property
    def returns_record_errors(self) -> bool:
        """Whether the response names the refused records (KIP-467, from 2.4 on)."""
        return self.at_least(2, 4)

    @cached_property
    def returns_first_record_error_only(self) -> bool:
        """Whether only the first refused record is named, and its message is that of the batch (measured on 2.4.1 and
        2.5.1)."""
        return not self.at_least(2, 5)

    @cached_property
    def lists_record_errors_in_message(self) -> bool:
        """Whether the batch's error message lists the first three refused records (measured on 3.1.2 and 3.2.3)."""
        return self.at_least(3, 2)

    @cached_property
    def missing_key_message_ends_with_period(self) -> bool:
        """Whether the message for a record without key in a compacted topic ends with a period (measured on 3.4.1 and
        3.5.2)."""
        return not self.at_least(3, 5)
