"""A consumer's positions and the records that it read, derived from its requests.

Theory of operation
-------------------
The position of a consumer is the offset that it fetches from. A client may fetch a partition from several positions at
once (KIP-333 reads the log end beside older records), so its start position is the lowest offset whose Fetch had no
error, and the records in the responses show what it read. The requests before the first Fetch, with their responses,
and each Fetch from a lower offset show how the client chose the position.

In a fetch session (KIP-227) a request names only the partitions whose position has changed, and a response only the
partitions with records or errors. So a partition in a request that is missing in the response has no error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto.records.batches import batch_end, first_offset, last_offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.observation.logged import LoggedRequest

LATEST_TIMESTAMP, EARLIEST_TIMESTAMP = -1, -2
NO_OFFSET = -1

OffsetRange = tuple[int, int]
"""The offsets from the first up to, but not including, the second."""


@dataclass(slots=True)
class PartitionTrace:
    """The requests of a consumer about one partition."""

    partition: int
    start: int | None = None
    """The lowest offset fetched without error."""
    position: int | None = None
    """The last offset fetched without error."""
    read: list[OffsetRange] = field(default_factory=list)
    """The offsets of fetched records, ordered and disjoint."""
    steps: list[str] = field(default_factory=list)
    """The requests and their results, up to the first Fetch without error; later ones only if they lower `start`."""

    def add(self, step: Step) -> None:
        is_start = step.fetched_from is not None and (self.start is None or step.fetched_from < self.start)
        if step.text and (self.start is None or is_start) and step.text not in self.steps[-1:]:
            self.steps.append(step.text)
        if is_start:
            self.start = step.fetched_from
        if step.fetched_from is not None:
            self.position = step.fetched_from
        if step.read is not None:
            self.read = _merged([*self.read, step.read])

    def unread(self, start: int, end: int) -> list[OffsetRange]:
        """Return the offsets from `start` up to, but not including, `end` that were not fetched."""
        gaps: list[OffsetRange] = []
        for read_start, read_end in [*self.read, (end, end)]:
            if start < min(read_start, end):
                gaps.append((start, min(read_start, end)))
            start = max(start, read_end)
        return gaps


@dataclass(frozen=True, slots=True)
class Step:
    """A request about one partition."""

    partition: int
    text: str = ""
    fetched_from: int | None = None
    """The offset of a Fetch without error."""
    read: OffsetRange | None = None
    """The offsets of the records in the response to a Fetch."""


def partition_traces(requests: Iterable[LoggedRequest], topic: str, topic_id: bytes) -> dict[int, PartitionTrace]:
    """Return the trace of each partition of a topic, in the order of the requests."""
    traces: dict[int, PartitionTrace] = {}
    for logged in requests:
        steps_of = STEPS.get(logged.api)
        if steps_of is None or logged.response is None:
            continue
        for step in steps_of(logged.request, logged.response, topic, topic_id):
            traces.setdefault(step.partition, PartitionTrace(step.partition)).add(step)
    return traces


def _merged(ranges: list[OffsetRange]) -> list[OffsetRange]:
    merged: list[OffsetRange] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _offset_fetch(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    topics = [one for group in response.groups for one in group.topics] if response.groups else response.topics
    for partition in _partitions(topics, "name", topic, topic_id):
        offset = partition.committed_offset
        step = "no committed offset" if offset == NO_OFFSET else f"committed offset is {offset}"
        if partition.error_code:
            step = f"OffsetFetch: {ErrorCode(partition.error_code).name}"
        yield Step(partition.partition_index, step)


def _list_offsets(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    timestamps = {one.partition_index: one.timestamp for one in _partitions(request.topics, "name", topic, topic_id)}
    for partition in _partitions(response.topics, "name", topic, topic_id):
        timestamp = timestamps.get(partition.partition_index)
        names = {LATEST_TIMESTAMP: "log end", EARLIEST_TIMESTAMP: "log start"}
        name = names.get(timestamp or 0, f"first record since {timestamp}")
        offset = partition.old_style_offsets[0] if partition.old_style_offsets else partition.offset
        yield Step(partition.partition_index, f"{name} is {offset}")


def _offset_for_leader_epoch(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    epochs = {one.partition: one.leader_epoch for one in _partitions(request.topics, "topic", topic, topic_id)}
    for partition in _partitions(response.topics, "topic", topic, topic_id):
        epoch = epochs.get(partition.partition)
        yield Step(partition.partition, f"leader epoch {epoch} ends at {partition.end_offset}")


def _fetch(request: Any, response: Any, topic: str, topic_id: bytes) -> Iterator[Step]:
    if response.error_code:
        return
    results = {one.partition_index: one for one in _partitions(response.responses, "topic", topic, topic_id)}
    fetched_from = {one.partition: one.fetch_offset for one in _partitions(request.topics, "topic", topic, topic_id)}
    for partition, offset in fetched_from.items():
        error_code = results[partition].error_code if partition in results else 0
        if error_code:
            yield Step(partition, f"Fetch from {offset}: {ErrorCode(error_code).name}")
        else:
            yield Step(partition, f"Fetch from {offset}", fetched_from=offset)
    for partition, result in results.items():
        read = _offsets_of(result.records or b"")
        if read is not None:
            # The first batch may begin before the position; the client drops those records.
            yield Step(partition, read=(max(read[0], fetched_from.get(partition, read[0])), read[1]))


def _offsets_of(records: bytes) -> OffsetRange | None:
    """Return the offset of the first record, and the offset after the last one, of the whole batches."""
    first, end, position = None, 0, 0
    while (next_position := batch_end(records, position)) is not None:
        first = first_offset(records, position) if first is None else first
        end = last_offset(records, position) + 1
        position = next_position
    return None if first is None else (first, end)


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
