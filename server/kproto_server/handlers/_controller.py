"""What the APIs that change topics have in common: the controller, and topics that a request names more than once."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from kproto_server.cluster.rules import check_new_partition_count
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.cluster.topics import Refusal
    from kproto_server.requests.context import RequestContext

NameOrId = TypeVar("NameOrId", str, bytes, "tuple[str | None, bytes]")


class MetadataTopicBehavior(VersionBehavior):
    """What Kafka releases do differently with the name of KRaft's metadata log."""

    @cached_property
    def cannot_be_created(self) -> bool:
        """Whether CreateTopics refuses it, in both modes: from 3.3.2 on (Kafka's CreateTopicsRequestTest)."""
        return self.at_least(3, 3)


class DuplicateTopicsBehavior(VersionBehavior):
    """What Kafka releases do differently with a topic that a request names more than once."""

    @cached_property
    def returns_each_duplicate(self) -> bool:
        """Whether CreateTopics and DeleteTopics return the topic as often as the request names it: ZooKeeper brokers
        from 2.3 on; others return it once (measured on 2.2.2, 2.3.1 and 3.9.2)."""
        return self.at_least(2, 3) and not self.is_kraft

    def create_topics_message(self, name: str, client_id: str) -> str:
        """Return the error message of CreateTopics (measured on 2.2.2, 2.3.1 and 3.3.2)."""
        if self.is_kraft:
            return "Duplicate topic name."
        if self.at_least(2, 3):
            return "Found multiple entries for this topic."
        reason = "contains multiple entries for the following topics"
        return f"Create topics request from client `{client_id}` {reason}: {name}"

    @cached_property
    def create_partitions_message(self) -> str:
        """The error message of CreatePartitions (measured on 2.1.1 and 3.9.2 in both modes)."""
        return "Duplicate topic name." if self.is_kraft else "Duplicate topic in request."


def not_controller(context: RequestContext) -> bool:
    """Return whether the request must go to another broker: only KRaft brokers forward it to the controller."""
    return not context.kafka_version.is_kraft and context.node.node_id != context.cluster.controller_id


def excess_partitions(counts: Iterable[int], adjective: str = "") -> Refusal | None:
    """Refuse a request that adds more than `NEW_PARTITIONS_MAX` partitions to all its topics together (measured on
    3.9.2 and 4.4.0); ``counts``: of each topic, negative ones for none."""
    return check_new_partition_count(sum(count for count in counts if count > 0), adjective)


def duplicate_counts(names: Iterable[NameOrId]) -> dict[NameOrId, int]:
    """Return the names or ids that a request has more than once, with their counts."""
    return {name: count for name, count in Counter(names).items() if count > 1}
