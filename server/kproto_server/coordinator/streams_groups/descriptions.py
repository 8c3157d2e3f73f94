"""The topology of a group as StreamsGroupDescribe returns it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k89_streams_group_describe import KeyValue, Subtopology, TopicInfo, Topology

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.records import streams_group_records as declared
    from kproto_server.coordinator.streams_groups.group import StreamsGroup
    from kproto_server.coordinator.streams_groups.topology import NewTopic, Subtopologies


def described_topology(group: StreamsGroup) -> Topology | None:
    """Return the topology with the partition counts that were decided, if it is ready; otherwise as it was sent."""
    topology, configured = group.data.topology, group.configured
    if topology is None:
        return None
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        return Topology(epoch=topology.epoch, subtopologies=_configured(configured.subtopologies))
    return Topology(epoch=topology.epoch, subtopologies=tuple([_sent(one) for one in topology.subtopologies]))


def _configured(subtopologies: Subtopologies) -> tuple[Subtopology, ...]:
    return tuple(
        [
            Subtopology(
                subtopology_id=subtopology_id,
                source_topics=tuple(sorted(one.source_topics)),
                repartition_sink_topics=tuple(sorted(one.repartition_sink_topics)),
                state_changelog_topics=_topics(one.state_changelog_topics),
                repartition_source_topics=_topics(one.repartition_source_topics),
            )
            for subtopology_id, one in subtopologies.items()
        ]
    )


def _topics(topics: Iterable[NewTopic]) -> tuple[TopicInfo, ...]:
    return tuple(
        [
            TopicInfo(
                name=topic.name,
                partitions=topic.partition_count,
                replication_factor=max(topic.replication_factor, 0),
                topic_configs=tuple([KeyValue(key=key, value=value or "") for key, value in topic.configs.items()]),
            )
            for topic in sorted(topics)
        ]
    )


def _sent(one: declared.Subtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=one.subtopology_id,
        source_topics=one.source_topics,
        repartition_sink_topics=one.repartition_sink_topics,
        state_changelog_topics=_sent_topics(one.state_changelog_topics),
        repartition_source_topics=_sent_topics(one.repartition_source_topics),
    )


def _sent_topics(topics: Iterable[declared.TopicInfo]) -> tuple[TopicInfo, ...]:
    return tuple(
        [
            TopicInfo(
                name=topic.name,
                partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                topic_configs=tuple([KeyValue(key=one.key, value=one.value) for one in topic.topic_configs]),
            )
            for topic in topics
        ]
    )
