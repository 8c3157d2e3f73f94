"""OffsetFetch (API key 9): one group at the top up to v7, a list of groups from v8 on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID
from kproto.messages.k09_offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kproto_server.coordinator.fetch import fetch_error
from kproto_server.handlers._offsets import OffsetsBehavior

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kproto.messages.k09_offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopic,
        OffsetFetchRequestTopics,
    )
    from kproto_server.coordinator.offsets import OffsetAndMetadata
    from kproto_server.requests.context import RequestContext

GROUP_ERROR_AT_TOP = 2
"""The first version with an error for the group as a whole (OF-31)."""
GROUPS = 8
"""The first version that asks for several groups."""
TOPIC_IDS = 10
"""The first version that names topics by id."""

NOTHING: Mapping[int, OffsetAndMetadata] = {}


class AskedTopic(NamedTuple):
    """A topic of a request, whichever way it was named."""

    name: str | None
    """None: there is no topic of this id."""
    topic_id: bytes
    partition_indexes: Sequence[int]


class Value(NamedTuple):
    """What is answered for one partition; by default that nothing is stored (OF-10)."""

    partition_index: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: int = 0


class TopicValues(NamedTuple):
    """A topic's part of an answer."""

    name: str
    topic_id: bytes
    values: Sequence[Value]


def handle(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    if context.api_version >= GROUPS:
        return OffsetFetchResponse(groups=tuple([_group(asked, context) for asked in request.groups]))
    asked = None if request.topics is None else _by_name(request.topics, context)
    if context.api_version == 1 and not asked and context.behavior(OffsetsBehavior).empty_fetch_returns_all:
        asked = None
    if context.api_version == 0:
        return _response([_v0_values(request.group_id, topic, context) for topic in asked or ()])
    error = context.coordinator.error_at(context.node, request.group_id)
    if not error:
        return _response(_found(request.group_id, asked, context))
    # The group's error, where the version has a place for it (OF-31).
    if context.api_version >= GROUP_ERROR_AT_TOP:
        return OffsetFetchResponse(error_code=error)
    return _response([_without_offsets(topic, error) for topic in asked or ()])


def _response(topics: Iterable[TopicValues]) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        topics=tuple(
            [
                OffsetFetchResponseTopic(
                    name=name,
                    partitions=tuple(
                        [
                            OffsetFetchResponsePartition(
                                partition_index=index,
                                committed_offset=offset,
                                committed_leader_epoch=leader_epoch,
                                metadata=metadata,
                                error_code=error,
                            )
                            for index, offset, leader_epoch, metadata, error in values
                        ]
                    ),
                )
                for name, _, values in topics
            ]
        )
    )


def _group(asked: OffsetFetchRequestGroup, context: RequestContext) -> OffsetFetchResponseGroup:
    group_id = asked.group_id
    error = context.coordinator.error_at(context.node, group_id)
    if not error:
        error = fetch_error(context.coordinator.groups.get(group_id), asked.member_id, asked.member_epoch)
    if error:
        return OffsetFetchResponseGroup(group_id=group_id, topics=(), error_code=error)
    read = _by_id if context.api_version >= TOPIC_IDS else _by_name
    found = _found(group_id, None if asked.topics is None else read(asked.topics, context), context)
    return OffsetFetchResponseGroup(group_id=group_id, topics=tuple([_topic_of_group(topic) for topic in found]))


def _topic_of_group(topic: TopicValues) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            [
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    metadata=metadata,
                    error_code=error,
                )
                for index, offset, leader_epoch, metadata, error in topic.values
            ]
        ),
    )


def _by_name(
    topics: Iterable[OffsetFetchRequestTopic | OffsetFetchRequestTopics], context: RequestContext
) -> list[AskedTopic]:
    if not context.behavior(OffsetsBehavior).merges_duplicate_partitions:
        return [AskedTopic(topic.name, ZERO_UUID, topic.partition_indexes) for topic in topics]
    # As a map by topic and partition, so that a topic without partitions is not there at all (OF-17).
    merged: dict[str, dict[int, None]] = {}
    for topic in topics:
        if topic.partition_indexes:
            merged.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return [AskedTopic(name, ZERO_UUID, tuple(indexes)) for name, indexes in merged.items()]


def _by_id(topics: Iterable[OffsetFetchRequestTopics], context: RequestContext) -> list[AskedTopic]:
    """Topics by their ids, the unknown ones last (OF-38)."""
    asked = [(context.cluster.topic_by_id(topic.topic_id), topic) for topic in topics]
    asked.sort(key=lambda pair: pair[0] is None)
    return [
        AskedTopic(None if known is None else known.name, topic.topic_id, topic.partition_indexes)
        for known, topic in asked
    ]


def _found(group_id: str, asked: Iterable[AskedTopic] | None, context: RequestContext) -> list[TopicValues]:
    """What is stored for the topics that were named, or all there is (OF-12)."""
    stored = context.coordinator.offsets.of_group(group_id)
    if asked is None:
        return [_all_of_topic(name, stored[name], context) for name in sorted(stored)]
    unknown_topic_error = context.behavior(OffsetsBehavior).fetch_of_unknown_topic_error
    found = []
    for topic in asked:
        if topic.name is None:
            found.append(_without_offsets(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        elif unknown_topic_error and topic.name not in context.cluster.topics:
            found.append(_without_offsets(topic, unknown_topic_error))
        else:
            partitions = stored.get(topic.name, NOTHING)
            values = [_value(index, partitions.get(index)) for index in topic.partition_indexes]
            found.append(TopicValues(topic.name, topic.topic_id, values))
    return found


def _all_of_topic(name: str, partitions: Mapping[int, OffsetAndMetadata], context: RequestContext) -> TopicValues:
    known = context.cluster.topics.get(name)
    values = [_value(index, stored) for index, stored in sorted(partitions.items())]
    return TopicValues(name, known.topic_id if known else ZERO_UUID, values)


def _value(index: int, stored: OffsetAndMetadata | None) -> Value:
    return Value(index) if stored is None else Value(index, stored.offset, stored.leader_epoch, stored.metadata)


def _without_offsets(topic: AskedTopic, error: int) -> TopicValues:
    values = [Value(index, error=error) for index in topic.partition_indexes]
    return TopicValues(topic.name or "", topic.topic_id, values)


def _v0_values(group_id: str, topic: AskedTopic, context: RequestContext) -> TopicValues:
    """What OffsetCommit v0 stored: without metadata, and a missing offset is an error (OF-11, OC-20)."""
    if context.behavior(OffsetsBehavior).v0_store != "zookeeper":
        return _without_offsets(topic, ErrorCode.UNSUPPORTED_VERSION)
    name = topic.name or ""
    stored = (
        context.coordinator.v0_offsets.of_group(group_id).get(name, NOTHING)
        if name in context.cluster.topics
        else NOTHING
    )
    return TopicValues(
        name,
        ZERO_UUID,
        [
            Value(index, stored[index].offset)
            if index in stored
            else Value(index, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for index in topic.partition_indexes
        ],
    )
