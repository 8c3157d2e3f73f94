"""A consumer's positions, derived from its requests.

Theory of operation
-------------------
The position of a consumer is the offset that it fetches from. Its start position is the first offset whose Fetch had no
error. The requests before that Fetch, with their responses, show how the consumer chose the position.

In a fetch session (KIP-227) a request names only the partitions whose position has changed, and a response only the
partitions with records or errors. So a partition in a request that is missing in the response has no error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.observation.logged import LoggedRequest

LATEST_TIMESTAMP, EARLIEST_TIMESTAMP = -1, -2
NO_OFFSET = -1


@dataclass(slots=True)
class PartitionTrace:
    """The requests of a consumer about one partition."""

    partition: int
    start: int | None = None
    """The first offset fetched without error."""
    position: int | None = None
    """The last offset fetched without error."""
    steps: list[str] = field(default_factory=list)
    """The requests and their results, up to the first Fetch without error."""


def partition_traces(requests: Iterable[LoggedRequest], topic: str, topic_id: bytes) -> dict[int, PartitionTrace]:
    """Return the trace of each partition of a topic, in the order of the requests."""
    traces: dict[int, PartitionTrace] = {}
    for logged in requests:
        steps_of = STEPS.get(logged.api)
        if steps_of is None or logged.response is None:
            continue
        for partition, step, fetched_from in steps_of(logged.request, logged.response, topic, topic_id):
            trace = traces.setdefault(partition, PartitionTrace(partition))
            if trace.start is None and step not in trace.steps[-1:]:
                trace.steps.append(step)
            if fetched_from is not None:
                trace.position = fetched_from
                trace.start = fetched_from if trace.start is None else trace.start
    return traces


Step = tuple[int, str, int | None]
"""Partition, description, and the offset of a Fetch without error."""


def _offset_fetch(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    topics = [one for group in response.groups for one in group.topics] if response.groups else response.topics
    for partition in _partitions(topics, "name", topic, topic_id):
        offset = partition.committed_offset
        step = "no committed offset" if offset == NO_OFFSET else f"committed offset is {offset}"
        if partition.error_code:
            step = f"OffsetFetch: {ErrorCode(partition.error_code).name}"
        yield partition.partition_index, step, None


def _list_offsets(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    timestamps = {one.partition_index: one.timestamp for one in _partitions(request.topics, "name", topic, topic_id)}
    for partition in _partitions(response.topics, "name", topic, topic_id):
        timestamp = timestamps.get(partition.partition_index)
        names = {LATEST_TIMESTAMP: "log end", EARLIEST_TIMESTAMP: "log start"}
        name = names.get(timestamp or 0, f"first record since {timestamp}")
        offset = partition.old_style_offsets[0] if partition.old_style_offsets else partition.offset
        yield partition.partition_index, f"{name} is {offset}", None


def _offset_for_leader_epoch(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    epochs = {one.partition: one.leader_epoch for one in _partitions(request.topics, "topic", topic, topic_id)}
    for partition in _partitions(response.topics, "topic", topic, topic_id):
        epoch = epochs.get(partition.partition)
        yield partition.partition, f"leader epoch {epoch} ends at {partition.end_offset}", None


def _fetch(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    errors = {
        one.partition_index: ErrorCode(one.error_code)
        for one in _partitions(response.responses, "topic", topic, topic_id)
        if one.error_code
    }
    if response.error_code:
        return
    for partition in _partitions(request.topics, "topic", topic, topic_id):
        error = errors.get(partition.partition)
        if error is None:
            yield partition.partition, f"Fetch from {partition.fetch_offset}", partition.fetch_offset
        else:
            yield partition.partition, f"Fetch from {partition.fetch_offset}: {error.name}", None


STEPS = {
    "OffsetFetch": _offset_fetch,
    "ListOffsets": _list_offsets,
    "OffsetForLeaderEpoch": _offset_for_leader_epoch,
    "Fetch": _fetch,
}


def _partitions(topics: Iterable[Any], name_field: str, topic: str, topic_id: bytes) -> Iterator[Any]:
    """Return the partitions of a topic, which newer versions name by its id."""
    for one in topics:
        if getattr(one, name_field) == topic or getattr(one, "topic_id", None) == topic_id:
            yield from one.partitions
