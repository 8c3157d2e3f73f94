"""What Kafka releases do differently in Fetch."""

from __future__ import annotations

from functools import cached_property

from kproto.codes import ErrorCode
from kproto_server.releases.release import VersionBehavior


class FetchBehavior(VersionBehavior):
    """The switches of Fetch."""

    def unknown_topic_error(self, api_version: int) -> ErrorCode:
        """Return the error for a topic or partition name that does not exist: UNKNOWN_TOPIC_OR_PARTITION, but by
        mistake UNSUPPORTED_COMPRESSION_TYPE in 2.1 below v10 (BA-74; measured on 2.1.1 and 2.2.2)."""
        if self.release == (2, 1) and api_version < 10:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @cached_property
    def responds_to_unknown_isolation_level(self) -> bool:
        """Whether an unknown isolation level gives UNKNOWN_SERVER_ERROR; before 2.7 it closes the connection (measured
        on 2.6.3 and 2.7.2)."""
        return self.at_least(2, 7)

    @cached_property
    def refuses_to_convert_nothing(self) -> bool:
        """Whether a partition without records, or with an error, has UNSUPPORTED_VERSION, too, if its topic forbids
        conversion (measured on 2.8.2 and 3.2.3)."""
        return self.at_least(3, 0)

    @cached_property
    def aborted_transactions_beside_error(self) -> tuple[()] | None:
        """The list of aborted transactions for a partition that does not exist, or whose records the version cannot
        have: empty from 3.0 on, before null (measured on 2.8.2, 3.0.2 and 3.9.2)."""
        return () if self.at_least(3, 0) else None

    @cached_property
    def records_beside_error(self) -> bytes | None:
        """The records of an error: null from 3.0 to 3.9, otherwise empty (measured on 2.8.2, 3.0.2, 3.9.2, 4.4.0)."""
        return None if self.at_least(3, 0) and not self.at_least(4, 0) else b""

    @cached_property
    def refuses_topics_with_zstd(self) -> bool:
        """Whether a version below v10 gets UNSUPPORTED_COMPRESSION_TYPE for a topic whose `compression.type` is zstd
        (KIP-110; measured on 2.1.1, 2.8.2, 3.9.2 and, without it, 4.0.0 and 4.4.0)."""
        return self.at_least(2, 1) and not self.at_least(4, 0)

    @cached_property
    def returns_last_stable_offset_to_all(self) -> bool:
        """Whether consumers that read uncommitted records receive the last stable offset, too, instead of -1 (measured
        on 2.0.1 and 2.1.1)."""
        return self.at_least(2, 1)

    @cached_property
    def sessions_check_leader_epochs(self) -> bool:
        """Whether later fetches of a session check the leader epoch that the consumer knows; the first fetch always
        does (measured on 2.4.1 and 2.5.1)."""
        return self.at_least(2, 5)
