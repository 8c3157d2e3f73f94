"""One committed offset, and the forms in which many come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    CommitEntries = Sequence[tuple[str, Sequence[tuple[int, "OffsetAndMetadata"]]]]
    """Topics with partitions and their offsets; of a partition named twice the last counts, but both are logged."""
    DeletionEntries = Sequence[tuple[str, Sequence[int]]]
    """Topics with partitions."""
    GroupToCheck = tuple[str, DeletionEntries | None]
    """A group that somebody should look at; with all its offsets, if nothing has to be known of them but that the last
    was committed until the time in question."""


class OffsetAndMetadata(NamedTuple):
    """What is stored for one partition of one group."""

    offset: int
    leader_epoch: int
    """-1: none (OC-46)."""
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None
    """None: expiry follows `offsets.retention.minutes` and the group (EX-20)."""
    topic_id: bytes
    """Of the topic at the time of the commit."""
