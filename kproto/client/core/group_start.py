"""Whether a group starts with a topic, or the partition was added later; and when the group started.

KIP-842 speaks of the start of the application, of the group, and of the first sight of a partition. It is the group's
here: a partition added while all members are down is not lost then.

The group's start time is kept in the metadata of its committed offsets, as ``t0=MILLISECONDS``, so that all members
and later ones agree on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

START = re.compile(r"(?:^|;)t0=(\d{1,18})(?:;|$)")


def starts(committed: Iterable[int | None]) -> bool:
    """Whether the group starts with a topic, given its committed offsets of ALL the topic's partitions."""
    return all(offset is None for offset in committed)


def earliest(own_start_ms: int, metadata: Iterable[str | None]) -> int:
    """The group's start time: this member's, or an earlier one that a committed offset of the group tells."""
    return min([own_start_ms, *(time for text in metadata if (time := start_ms(text)) is not None)])


def start_ms(metadata: str | None) -> int | None:
    """The start time in an offset's metadata."""
    found = START.search(metadata or "")
    return int(found[1]) if found else None


def metadata(group_start_ms: int) -> str:
    """The metadata that tells a group's start time."""
    return f"t0={group_start_ms}"
