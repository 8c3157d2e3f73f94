"""DeleteTopics, by name or by id; offsets that were committed for a deleted topic go with it (BA-91, EX-34)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID
from kproto.messages.k20_delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto_server.coordinator.deletion import forget_topics
from kproto_server.handlers._controller import DuplicateTopicsBehavior, names_standing_twice, not_controller
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Topic
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.deferred import DeferredResponse


DISABLED_SINCE = 3
"""The version that brought an error of its own for a broker that deletes nothing."""


class Asked(NamedTuple):
    """What a request names; one of the two."""

    name: str | None
    topic_id: bytes = ZERO_UUID

    def find(self, cluster: Cluster) -> Topic | None:
        return cluster.topic_by_id(self.topic_id) if self.name is None else cluster.topic(self.name)


class DeleteTopicsBehavior(VersionBehavior):
    """What Kafka releases do differently in DeleteTopics."""

    @cached_property
    def refuses_if_disabled(self) -> bool:
        """Whether all topics are refused where deletion is disabled; before 2.1 existing ones give REQUEST_TIMED_OUT
        (BA-91; measured on 2.0.1 and 2.1.1)."""
        return self.at_least(2, 1)


def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse | DeferredResponse:
    if request.topics:
        asked = [Asked(topic.name, topic.topic_id) for topic in request.topics]
    else:
        asked = [Asked(name) for name in request.topic_names]
    is_enabled = context.settings.current.bool("delete.topic.enable")
    if not is_enabled and context.behavior(DeleteTopicsBehavior).refuses_if_disabled:
        known = context.api_version >= DISABLED_SINCE
        error = ErrorCode.TOPIC_DELETION_DISABLED if known else ErrorCode.INVALID_REQUEST
        return DeleteTopicsResponse(responses=tuple(_result(one, error) for one in asked))
    results = tuple(_kraft(asked, context) if context.kafka_version.is_kraft else _zookeeper(asked, context))
    return context.coordinator.log.then(lambda: DeleteTopicsResponse(responses=results))


def _result(asked: Asked, error: ErrorCode, message: str | None = None) -> DeletableTopicResult:
    return DeletableTopicResult(name=asked.name, topic_id=asked.topic_id, error_code=error, error_message=message)


def _zookeeper(asked: list[Asked], context: RequestContext) -> Iterator[DeletableTopicResult]:
    if not context.behavior(DuplicateTopicsBehavior).returns_each_duplicate:
        asked = list(dict.fromkeys(asked))
    if not_controller(context):
        yield from (_result(one, ErrorCode.NOT_CONTROLLER) for one in asked)
        return
    found = [one.find(context.cluster) for one in asked]
    for one, topic in zip(asked, found, strict=True):
        if one.name is not None and one.topic_id != ZERO_UUID:
            yield _result(one, ErrorCode.INVALID_REQUEST)
        elif topic is not None:
            yield _result(Asked(topic.name, one.topic_id), _delete(topic, context))
        elif one.topic_id != ZERO_UUID:
            yield _result(one, ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            # A broker that was told neither a name nor an id takes the topic for one that is not the client's to see.
            no_name = one.name is None
            yield _result(
                one, ErrorCode.TOPIC_AUTHORIZATION_FAILED if no_name else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )


def _kraft(asked: list[Asked], context: RequestContext) -> Iterator[DeletableTopicResult]:
    names = names_standing_twice(one.name for one in asked if one.name is not None)
    ids = names_standing_twice(one.topic_id for one in asked if one.name is None)
    supplied = {one.topic_id for one in asked if one.name is None}
    renamed = set()
    for one in asked:
        topic = one.find(context.cluster)
        if one.name is not None and one.topic_id == ZERO_UUID and topic is not None and topic.topic_id in supplied:
            renamed.add(topic.topic_id)
    for one in dict.fromkeys(asked):
        if one.name is None and one.topic_id in renamed:
            continue  # told with its name
        yield _kraft_one(one, one.name in names, one.topic_id in ids, renamed, context)


def _kraft_one(
    asked: Asked, name_is_twice: bool, id_is_twice: bool, renamed: set[bytes], context: RequestContext
) -> DeletableTopicResult:
    has_id = asked.topic_id != ZERO_UUID
    topic = asked.find(context.cluster)
    if asked.name is not None and has_id:
        return _invalid(asked, "You may not specify both topic name and topic id.")
    if asked.name is None and not has_id:
        return _invalid(asked, "Neither topic name nor id were specified.")
    if name_is_twice or id_is_twice:
        return _invalid(asked, "Duplicate topic name." if name_is_twice else "Duplicate topic id.")
    if topic is None:
        error = ErrorCode.UNKNOWN_TOPIC_ID if has_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _result(asked, error, error.message)
    told = Asked(topic.name, topic.topic_id)
    if topic.topic_id in renamed:
        return _invalid(told, "The provided topic name maps to an ID that was already supplied.")
    return _result(told, _delete(topic, context))


def _invalid(asked: Asked, message: str) -> DeletableTopicResult:
    return _result(asked, ErrorCode.INVALID_REQUEST, message)


def _delete(topic: Topic, context: RequestContext) -> ErrorCode:
    if not context.settings.current.bool("delete.topic.enable"):
        return ErrorCode.REQUEST_TIMED_OUT
    forget_topics(context.coordinator, [topic.name], context.now_ms)
    context.cluster.delete_topic(topic.name)
    if topic.name == OFFSETS_TOPIC:
        # Groups were in its partitions. The next FindCoordinator makes it anew, empty.
        context.coordinator.forget_groups()
    return ErrorCode.NONE
