"""What the assignors read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kproto_server.coordinator.consumer_groups.data import Assignment


class MemberSpec(NamedTuple):
    """What an assignor knows of a member."""

    topic_ids: tuple[bytes, ...]
    """Subscribed topics that exist."""
    target: Assignment
    """The present target assignment."""
    group_instance_id: str | None = None


Members = dict[str, MemberSpec]
PartitionCounts = dict[bytes, int]
"""The number of partitions of each subscribed topic."""
