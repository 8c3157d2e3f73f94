"""Where a consumer went, from what it asked the broker; pure.

Theory of operation. A consumer's position is the offset that it fetches from. The first one at which a Fetch was not
refused is where it went; what it asked before, and what it was told, is how it got there. In a fetch session (KIP-227)
a request names only partitions whose position is new, and an answer only those with news: a partition that was asked
for and is not in the answer was not refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.observation.logged import LoggedRequest

LATEST, EARLIEST = -1, -2
NONE = -1


@dataclass(slots=True)
class Journey:
    """What a consumer did about one partition."""

    partition: int
    went_to: int | None = None
    """The first offset that it could fetch from."""
    position: int | None = None
    """The last one that it has fetched from."""
    steps: list[str] = field(default_factory=list)
    """What it asked until it could fetch, and what it was told."""


def journeys(requests: Iterable[LoggedRequest], topic: str, topic_id: bytes) -> dict[int, Journey]:
    """Return what was done about each partition of a topic, in the order of the requests."""
    found: dict[int, Journey] = {}
    for logged in requests:
        told = STEPS.get(logged.api)
        if told is None or logged.response is None:
            continue
        for partition, step, offset in told(logged.request, logged.response, topic, topic_id):
            journey = found.setdefault(partition, Journey(partition))
            if journey.went_to is None and step not in journey.steps[-1:]:
                journey.steps.append(step)
            if offset is not None:
                journey.position = offset
                journey.went_to = offset if journey.went_to is None else journey.went_to
    return found


Step = tuple[int, str, int | None]
"""Partition, what to say of it, and the offset that was fetched from."""


def _committed(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    topics = [one for group in response.groups for one in group.topics] if response.groups else response.topics
    for partition in _of_topic(topics, "name", topic, topic_id):
        offset = partition.committed_offset
        said = "no offset is committed" if offset == NONE else f"{offset} is committed"
        if partition.error_code:
            said = ErrorCode(partition.error_code).name
        yield partition.partition_index, said, None


def _listed(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    asked = {one.partition_index: one.timestamp for one in _of_topic(request.topics, "name", topic, topic_id)}
    for partition in _of_topic(response.topics, "name", topic, topic_id):
        timestamp = asked.get(partition.partition_index)
        name = {LATEST: "the end", EARLIEST: "the beginning"}.get(timestamp or 0, f"the first record since {timestamp}")
        offset = partition.old_style_offsets[0] if partition.old_style_offsets else partition.offset
        yield partition.partition_index, f"{name} is {offset}", None


def _epoch_ended(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    asked = {one.partition: one.leader_epoch for one in _of_topic(request.topics, "topic", topic, topic_id)}
    for partition in _of_topic(response.topics, "topic", topic, topic_id):
        epoch = asked.get(partition.partition)
        yield partition.partition, f"epoch {epoch} ends at {partition.end_offset}", None


def _fetched(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    refused = {
        one.partition_index: ErrorCode(one.error_code)
        for one in _of_topic(response.responses, "topic", topic, topic_id)
        if one.error_code
    }
    if response.error_code:
        return
    for partition in _of_topic(request.topics, "topic", topic, topic_id):
        error = refused.get(partition.partition)
        if error is None:
            yield partition.partition, f"fetched from {partition.fetch_offset}", partition.fetch_offset
        else:
            yield partition.partition, f"{partition.fetch_offset}: {error.name}", None


STEPS = {"OffsetFetch": _committed, "ListOffsets": _listed, "OffsetForLeaderEpoch": _epoch_ended, "Fetch": _fetched}


def _of_topic(topics: Iterable[Any], name_field: str, topic: str, topic_id: bytes) -> Iterator[Any]:
    """The partitions of a topic, which newer versions name by its id."""
    for one in topics:
        if getattr(one, name_field) == topic or getattr(one, "topic_id", None) == topic_id:
            yield from one.partitions
