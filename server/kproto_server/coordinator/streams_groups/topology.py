"""The topology of a group, configured: its tasks, and the internal topics that it needs.

Theory of operation. A topology names source topics, which must exist, and internal topics, which the broker creates:
repartition topics, through which one subtopology sends records to another one, and the changelogs of state stores.
`partition_counts` finds how many partitions an internal topic has. A subtopology has a task for each partition of the
largest topic that it reads. The configuration follows from the topics that there are, and is not in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order
from kproto.records import streams_group_records as declared
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.streams_groups.data import topics_of
from kproto_server.coordinator.streams_groups.partition_counts import partition_counts
from kproto_server.coordinator.streams_groups.statuses import Status, StatusCode
from kproto_server.coordinator.subscribed_topics import metadata_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kproto.messages.k88_streams_group_heartbeat import CopartitionGroup, TaskIds, TopicInfo, Topology
    from kproto_server.cluster.topics import Topic
    from kproto_server.coordinator.coordinator import GroupCoordinator

SHOWN_MAX = 3
"""Topics that a status names."""
BROKER_DEFAULT = -1


TASKS_MAX = 10_000
"""Tasks of a group. An assignment takes about 8 us for each, and other clients wait."""


class NewTopic(NamedTuple):
    """An internal topic that a topology needs."""

    name: str
    partition_count: int
    replication_factor: int
    """`BROKER_DEFAULT`: that of the broker."""
    configs: dict[str, str | None]


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with the partition counts of its topics."""

    task_count: int
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[NewTopic, ...]
    state_changelog_topics: tuple[NewTopic, ...]

    @property
    def is_stateful(self) -> bool:
        return bool(self.state_changelog_topics)


Subtopologies = dict[str, ConfiguredSubtopology]
"""Subtopologies by id, in the order of the ids."""


class ConfiguredTopology(NamedTuple):
    """A topology with the topics that there are."""

    subtopologies: Subtopologies | None = None
    """None: the topics do not fit."""
    problem: Status | None = None
    """Why the topology is not ready; None: it is."""
    missing: Sequence[NewTopic] = ()
    """Internal topics that do not exist."""

    @property
    def is_ready(self) -> bool:
        return self.problem is None


def stored_topology(topology: Topology) -> declared.StreamsGroupTopologyValue:
    """Return a topology as the log has it."""
    return declared.StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=tuple(
            [
                declared.Subtopology(
                    subtopology_id=one.subtopology_id,
                    source_topics=one.source_topics,
                    source_topic_regex=one.source_topic_regex,
                    state_changelog_topics=_topic_infos(one.state_changelog_topics),
                    repartition_sink_topics=one.repartition_sink_topics,
                    repartition_source_topics=_topic_infos(one.repartition_source_topics),
                    copartition_groups=tuple([_copartition_group(group) for group in one.copartition_groups]),
                )
                for one in topology.subtopologies
            ]
        ),
    )


def _topic_infos(topics: Iterable[TopicInfo]) -> tuple[declared.TopicInfo, ...]:
    return tuple(
        [
            declared.TopicInfo(
                name=topic.name,
                partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                topic_configs=tuple(
                    [declared.TopicConfig(key=one.key, value=one.value) for one in topic.topic_configs]
                ),
            )
            for topic in topics
        ]
    )


def _copartition_group(group: CopartitionGroup) -> declared.CopartitionGroup:
    return declared.CopartitionGroup(
        source_topics=group.source_topics,
        source_topic_regex=group.source_topic_regex,
        repartition_source_topics=group.repartition_source_topics,
    )


def are_same(first: declared.StreamsGroupTopologyValue, second: declared.StreamsGroupTopologyValue) -> bool:
    """Return whether two topologies are equal; the order of subtopologies does not matter."""
    return (first.epoch, _by_id(first)) == (second.epoch, _by_id(second))


def _by_id(topology: declared.StreamsGroupTopologyValue) -> dict[str, declared.Subtopology]:
    return {one.subtopology_id: one for one in topology.subtopologies}


def hash_of_topics(coordinator: GroupCoordinator, topology: declared.StreamsGroupTopologyValue) -> int:
    """Return the hash of the topology's topics."""
    return metadata_hash(topics_of(topology), coordinator.topics, coordinator.rack_of)


def task_problem(subtopologies: Subtopologies, tasks: Iterable[TaskIds]) -> str | None:
    """Return why some of these tasks don't exist; None if all do."""
    for one in tasks:
        subtopology = subtopologies.get(one.subtopology_id)
        if subtopology is None:
            return f"Subtopology {one.subtopology_id} does not exist in the topology."
        for index in one.partitions:
            if not 0 <= index < subtopology.task_count:
                return (
                    f"Task {index} for subtopology {one.subtopology_id} is invalid. Number of tasks for this "
                    f"subtopology: {subtopology.task_count}"
                )
    return None


def configure(
    topology: declared.StreamsGroupTopologyValue, topics: Mapping[str, Topic]
) -> ConfiguredTopology | Refusal:
    """Return a topology with the topics that there are, or why it is invalid with any topics."""
    if topology.epoch < 0:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    missing_sources = sorted({name for one in topology.subtopologies for name in one.source_topics} - topics.keys())
    if missing_sources:
        detail = f"Source topics {_summary(missing_sources)} are missing."
        return ConfiguredTopology(problem=Status(StatusCode.MISSING_SOURCE_TOPICS, detail))
    existing = {name: len(topics[name].partitions) for name in topics_of(topology) if name in topics}
    decided = partition_counts(topology, existing)
    if isinstance(decided, Refusal):
        return decided
    if isinstance(decided, Status):
        return ConfiguredTopology(problem=decided)
    counts = {**decided, **existing}
    ordered = sorted(topology.subtopologies, key=lambda one: one.subtopology_id)
    subtopologies = {one.subtopology_id: _configured_subtopology(one, decided, counts) for one in ordered}
    wanted = {
        topic.name: topic
        for one in subtopologies.values()
        for topic in (*one.repartition_source_topics, *one.state_changelog_topics)
    }
    if any(one.task_count < 1 for one in subtopologies.values()) or any(
        topic.partition_count < 1 for topic in wanted.values()
    ):
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    task_count = sum(one.task_count for one in subtopologies.values())
    if task_count > TASKS_MAX:
        detail = f"kproto assigns at most {TASKS_MAX} tasks of a group, and this topology has {task_count}."
        return ConfiguredTopology(problem=Status(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail))
    for name, topic in wanted.items():
        present = existing.get(name)
        if present is not None and present != topic.partition_count:
            detail = (
                f"Existing topic {name} has different number of partitions: expected {topic.partition_count}, found "
                f"{present}"
            )
            return ConfiguredTopology(problem=Status(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail))
    missing = [wanted[name] for name in in_hash_order(wanted, java_hash) if name not in topics]
    if not missing:
        return ConfiguredTopology(subtopologies)
    detail = f"Internal topics are missing: {_summary([topic.name for topic in missing])}"
    return ConfiguredTopology(subtopologies, Status(StatusCode.MISSING_INTERNAL_TOPICS, detail), missing)


def _configured_subtopology(
    one: declared.Subtopology, decided: Mapping[str, int], counts: Mapping[str, int]
) -> ConfiguredSubtopology:
    repartition = tuple([_internal_topic(topic, decided) for topic in one.repartition_source_topics])
    read = (*one.source_topics, *[topic.name for topic in one.repartition_source_topics])
    return ConfiguredSubtopology(
        task_count=max([counts[name] for name in read], default=0),
        source_topics=one.source_topics,
        repartition_sink_topics=one.repartition_sink_topics,
        repartition_source_topics=repartition,
        state_changelog_topics=tuple([_internal_topic(topic, decided) for topic in one.state_changelog_topics]),
    )


def _internal_topic(topic: declared.TopicInfo, counts: Mapping[str, int]) -> NewTopic:
    configs: dict[str, str | None] = {one.key: one.value for one in topic.topic_configs}
    return NewTopic(
        topic.name, topic.partitions or counts[topic.name], topic.replication_factor or BROKER_DEFAULT, configs
    )


def _summary(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_MAX
    shown = ", ".join(names[:SHOWN_MAX])
    return f"{shown} and {more} additional topics" if more > 0 else shown
