"""One committed offset, and collections of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    CommitEntries = Sequence[tuple[str, Sequence[tuple[int, "OffsetAndMetadata"]]]]
    """Topics with partitions and their offsets. If a partition is named twice, the last counts; the log gets both."""
    DeletionEntries = Sequence[tuple[str, Sequence[int]]]
    """Topics with partitions."""
    GroupToCheck = tuple[str, DeletionEntries | None]
    """A group that may have expired offsets. With all its offsets, if all of them were committed before the time in
    question and have no expire timestamp: then no check is needed."""


class OffsetAndMetadata(NamedTuple):
    """What is stored for one partition of one group."""

    offset: int
    leader_epoch: int
    """-1: unknown (OC-46)."""
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None
    """None: the offset expires by `offsets.retention.minutes` and the state of its group (EX-20)."""
    topic_id: bytes
    """The topic's id at the time of the commit."""
