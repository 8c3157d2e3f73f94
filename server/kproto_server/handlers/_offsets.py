"""What Kafka releases do differently with the partitions of OffsetCommit, OffsetFetch and OffsetDelete requests."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from kproto.codes import ErrorCode
from kproto_server.releases.release import VersionBehavior


class OffsetsBehavior(VersionBehavior):
    """The switches of the three APIs."""

    @cached_property
    def merges_duplicate_partitions(self) -> bool:
        """Whether the response has a partition that the request names twice only once, and the last offset of a commit
        wins: up to 3.9 (OC-14, OF-17).

        Up to 3.9 the response follows the order of a hash map. From 4.0 on, partitions that are refused before the
        coordinator sees them come first, the others in the order of the request.
        """
        return not self.at_least(4, 0)

    @cached_property
    def merges_unknown_partitions(self) -> bool:
        """Whether duplicates are merged also for partitions that do not exist (measured on 3.4.1 and 3.5.2)."""
        return not self.at_least(3, 5)

    @cached_property
    def merges_duplicate_groups(self) -> bool:
        """Whether OffsetFetch returns a group that the request names twice only once, and all groups in the order of a
        hash map: up to 3.4 (measured on 3.3.2; KafkaApis of 3.0 to 3.5)."""
        return not self.at_least(3, 5)

    @cached_property
    def returns_unknown_topics_without_partitions(self) -> bool:
        """Whether OffsetCommit and OffsetDelete return an unknown topic for which the request names no partition: from
        3.5 on. A known topic without partitions is left out by all releases (measured on 2.8.2, 3.2.3, 3.9.2 and 4.4.0;
        KafkaApis of 3.4 and 3.5)."""
        return self.at_least(3, 5)

    @cached_property
    def v0_store(self) -> Literal["zookeeper", "unsupported", "absent"]:
        """What OffsetCommit and OffsetFetch v0 do: use a store of their own, return UNSUPPORTED_VERSION for each
        partition (KRaft up to 3.9), or not exist (OC-20, OF-11). "latest" serves v0 with a store of its own."""
        if self.is_latest or not self.is_kraft:
            return "zookeeper"
        return "absent" if self.at_least(4, 0) else "unsupported"

    @cached_property
    def checks_partitions_of_commit(self) -> bool:
        """Whether a commit to a partition that its topic does not have is refused: from 2.0 on. Before, only the topic
        has to exist (OC-10 row 7; measured on 1.1.1 and 2.0.1)."""
        return self.at_least(2, 0)

    @cached_property
    def fetch_of_unknown_topic_error(self) -> ErrorCode:
        """The error of OffsetFetch v1 and later for a topic that does not exist: NONE (OF-10), but
        UNKNOWN_TOPIC_OR_PARTITION in 0.8.2 (measured on 0.8.2.2 and 0.9.0.1)."""
        return ErrorCode.NONE if self.at_least(0, 9) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @cached_property
    def empty_fetch_returns_all(self) -> bool:
        """Whether OffsetFetch v1 without topics returns all offsets of the group: from 0.9 to 0.10.1. From 0.10.2 on,
        v2 with null topics does so (OF-13; measured on 0.8.2.2, 0.9.0.1, 0.10.1.1 and 0.10.2.2)."""
        return self.at_least(0, 9) and not self.at_least(0, 10, 2)

    @cached_property
    def delete_repeats_topics(self) -> bool:
        """Whether OffsetDelete returns a topic once for each of its partitions, with all of them each time: in 2.4 and
        2.5 (measured on 2.4.1, 2.5.1 and 2.6.3)."""
        return not self.at_least(2, 6)
