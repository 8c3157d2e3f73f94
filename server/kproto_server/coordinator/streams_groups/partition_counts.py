"""How many partitions the internal topics of a topology have.

Theory of operation. A repartition topic may have a fixed count. Otherwise it gets the largest count of the topics that
are read by a subtopology which writes to it; as those may be repartition topics themselves, counts are found in rounds.
Then the topics of each copartition group get equal counts: a join reads the same partition of both sides. A changelog
has a partition for each task of its subtopology.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.streams_groups.statuses import Status, StatusCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kproto.records.streams_group_records import CopartitionGroup, StreamsGroupTopologyValue, Subtopology

    Counts = dict[str, int]


def partition_counts(topology: StreamsGroupTopologyValue, existing: Mapping[str, int]) -> Counts | Status | Refusal:
    """Return the partition counts of all topics that exist and of the internal ones; or why there are none.

    ``existing``: the counts of existing topics, among them all source topics. A status asks for other topics; a
    refusal says that the topology is invalid.
    """
    subtopologies = topology.subtopologies
    found = _repartition_counts(subtopologies, existing)
    if not isinstance(found, dict):
        return found
    decided = found

    def count_of(name: str) -> int:
        return existing[name] if name in existing else decided[name]

    fixed = {topic.name for one in subtopologies for topic in one.repartition_source_topics if topic.partitions}
    flexible = {topic.name for one in subtopologies for topic in one.repartition_source_topics if not topic.partitions}
    fixed_counts = set(map(count_of, fixed))
    for one in subtopologies:
        for group in one.copartition_groups:
            names = _names(one, group)
            if names is None:
                return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
            copartitioned = _copartitioned(names, fixed, flexible, fixed_counts, count_of)
            if not isinstance(copartitioned, dict):
                return copartitioned
            decided.update(copartitioned)
    for one in subtopologies:
        counts = [count_of(name) for name in _read_topics(one)]
        if not counts:
            return invalid(f"No source topics found for subtopology {one.subtopology_id}")
        decided.update(dict.fromkeys([topic.name for topic in one.state_changelog_topics], max(counts)))
    return decided


def _names(one: Subtopology, group: CopartitionGroup) -> set[str] | None:
    """Return the topics of a copartition group; None if it has an index that no topic has."""
    repartition = [topic.name for topic in one.repartition_source_topics]
    pairs = ((one.source_topics, group.source_topics), (repartition, group.repartition_source_topics))
    if any(not 0 <= index < len(names) for names, indexes in pairs for index in indexes):
        return None
    return {names[index] for names, indexes in pairs for index in indexes}


def _read_topics(one: Subtopology) -> list[str]:
    return [*one.source_topics, *[topic.name for topic in one.repartition_source_topics]]


def invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _repartition_counts(subtopologies: Sequence[Subtopology], existing: Mapping[str, int]) -> Counts | Refusal:
    """Return the counts of the repartition topics, before those of copartition groups are made equal."""
    sources = [topic for one in subtopologies for topic in one.repartition_source_topics]
    decided: Counts = {topic.name: topic.partitions for topic in sources if topic.partitions}
    # The visits of Kafka's rounds that decide something, as pairs of a round and the index of a subtopology.
    visits: list[tuple[int, int]] = []
    waiting: dict[str, list[int]] = {}
    is_waiting: set[int] = set()
    for index, one in enumerate(subtopologies):
        if _largest(one, decided, existing) is not None:
            visits.append((0, index))
        else:
            is_waiting.add(index)
            for topic in one.repartition_source_topics:
                waiting.setdefault(topic.name, []).append(index)
    while visits:
        number, index = heapq.heappop(visits)
        undecided = [sink for sink in subtopologies[index].repartition_sink_topics if sink not in decided]
        count = _largest(subtopologies[index], decided, existing) if undecided else None
        if count is None:
            continue
        for sink in undecided:
            decided[sink] = count
            for reader in is_waiting.intersection(waiting.pop(sink, ())):
                is_waiting.remove(reader)
                heapq.heappush(visits, (number + (reader <= index), reader))
    if any(sink not in decided for one in subtopologies for sink in one.repartition_sink_topics):
        return invalid(
            "Failed to compute number of partitions for all repartition topics. There may be loops in the topology "
            "that cannot be resolved."
        )
    if any(topic.name not in decided for topic in sources):
        return invalid(
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic is "
            "never used as a sink topic."
        )
    return decided


def _largest(one: Subtopology, decided: Counts, existing: Mapping[str, int]) -> int | None:
    """Return the largest known count of the topics that a subtopology reads; None if none is known yet."""
    counts = [decided[topic.name] for topic in one.repartition_source_topics if topic.name in decided]
    return max([*counts, *[existing[name] for name in one.source_topics]], default=None)


def _copartitioned(
    names: set[str], fixed: set[str], flexible: set[str], fixed_counts: set[int], count_of: Callable[[str], int]
) -> Counts | Status | Refusal:
    """Return the counts of the repartition topics of a copartition group."""
    repartition = {name: count_of(name) for name in names if name in fixed or name in flexible}
    others = {name: count_of(name) for name in names if name not in repartition}
    if not names:
        return {}
    if others:
        wanted = next(iter(others.values()))
        if len(set(others.values())) > 1:
            return _wrong(f"Following topics do not have the same number of partitions: [{_listed(others)}]")
    elif fixed:
        # Kafka compares those of all copartition groups.
        if len(fixed_counts) > 1:
            return _wrong(f"Following topics do not have the same number of partitions: [{_listed(repartition)}]")
        wanted = next(iter(fixed_counts))
    else:
        wanted = max(repartition.values())
    for name, count in repartition.items():
        if name in fixed and count != wanted:
            return _wrong(
                f"Number of partitions [{count}] of repartition topic [{name}] doesn't match number of partitions "
                f"[{wanted}] of the source topic."
            )
    return dict.fromkeys(repartition, wanted)


def _wrong(detail: str) -> Status:
    return Status(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)


def _listed(counts: Mapping[str, int]) -> str:
    return "{" + ", ".join(f"{name}={count}" for name, count in sorted(counts.items())) + "}"
