"""Test data: commit templates, and their requests, which are a group id with offsets after it."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from kproto_server.coordinator.offsets_log.commits import CommitTemplate
from kproto_server.coordinator.version_behavior import CoordinatorBehavior

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.coordinator.offsets import CommitEntries
    from kproto_server.releases.kafka_version import KafkaVersion


def template_of(
    group_size: int,
    entries: CommitEntries,
    kafka_version: KafkaVersion,
    expires_after_ms: int | None = None,
    offset_count: int | None = None,
) -> CommitTemplate:
    """Return the template of requests with a number of offsets; by default that of the entries."""
    count = sum(len(partitions) for _, partitions in entries) if offset_count is None else offset_count
    offsets_of = Struct(f">{group_size}x{count}q").unpack_from
    return CommitTemplate(
        entries, kafka_version.behavior(CoordinatorBehavior), slice(0, group_size), offsets_of, expires_after_ms
    )


def request_of(group_id: str, offsets: Sequence[int]) -> bytes:
    return group_id.encode() + Struct(f">{len(offsets)}q").pack(*offsets)
