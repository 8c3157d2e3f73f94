"""The group start of KIP-842: whether a group starts with a topic, and when the group started.

KIP-842 uses the start of the application, the start of the group and the first assignment of a partition
interchangeably. kproto uses the start of the group: with the start of the application, a partition that is added while
all members are down would lose records.

Committed offsets carry the group's start time as metadata, ``t0=MILLISECONDS``, so that all members agree on it. The
metadata is lost where the user, an admin tool or another client commits. So it decides only about topics without any
committed offset, and a group whose start time is lost counts as older than all records (`UNKNOWN_START_MS`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

UNKNOWN_START_MS = 0
"""The start time of a group that has committed offsets, but none with a start time: no record is older."""
START_TIME = re.compile(r"(?:^|;)t0=(\d{1,18})(?:;|$)")


def group_starts(committed: Iterable[int | None]) -> bool:
    """Return whether the group starts with a topic, given its committed offsets of ALL partitions of the topic."""
    return all(offset is None for offset in committed)


def known_start_ms(metadata: Iterable[str | None]) -> int | None:
    """Return the smallest start time in the metadata of a group's committed offsets, None if there is none."""
    return min((time_ms for text in metadata if (time_ms := start_ms(text)) is not None), default=None)


def start_ms(metadata: str | None) -> int | None:
    """Return the start time in the metadata of a committed offset."""
    found = START_TIME.search(metadata or "")
    return int(found[1]) if found else None


def start_metadata(group_start_ms: int) -> str:
    """Return the commit metadata that carries a group's start time."""
    return f"t0={group_start_ms}"
