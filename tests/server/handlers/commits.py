"""Helpers for tests of OffsetCommit: unusual requests, and short forms of responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

TOO_LONG = "x" * 4097
"""Metadata of one unit more than the default limit."""


def codes(response: OffsetCommitResponse) -> list[tuple[str, int, int]]:
    """(topic, partition, error) in the order of the response."""
    return [(topic.name, p.partition_index, p.error_code) for topic in response.topics for p in topic.partitions]


def offsets_of(state: BrokerState, group_id: str) -> dict[str, dict[int, int]]:
    return {t: {p: v.offset for p, v in ps.items()} for t, ps in state.coordinator.offsets.of_group(group_id).items()}


def repeated(*partitions: tuple[str, int, int]) -> OffsetCommitRequest:
    """Each as a topic entry of its own: (topic, partition, offset)."""
    return OffsetCommitRequest(
        group_id="g",
        topics=tuple(
            OffsetCommitRequestTopic(
                name=name,
                partitions=(
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=""),
                ),
            )
            for name, index, offset in partitions
        ),
    )
