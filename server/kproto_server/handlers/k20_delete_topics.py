"""DeleteTopics (API key 20): delete topics by name or by id, with the offsets committed for them (BA-91, EX-34)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID
from kproto.messages.k20_delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kproto_server.coordinator.deletion import forget_topics
from kproto_server.coordinator.membership.unloading import forget_all
from kproto_server.handlers._controller import DuplicateTopicsBehavior, duplicate_counts, not_controller
from kproto_server.handlers._topic_quota import TopicQuota
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Topic
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext


DISABLED_SINCE = 3
"""The version from which on TOPIC_DELETION_DISABLED exists."""


class TopicNameOrId(NamedTuple):
    """A topic as the request names it: by name or by id."""

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
        requested = [TopicNameOrId(topic.name, topic.topic_id) for topic in request.topics]
    else:
        requested = [TopicNameOrId(name) for name in request.topic_names]
    if is_disabled(context):
        known = context.api_version >= DISABLED_SINCE
        error = ErrorCode.TOPIC_DELETION_DISABLED if known else ErrorCode.INVALID_REQUEST
        return DeleteTopicsResponse(responses=tuple(_result(one, error) for one in requested))
    quota = TopicQuota(context)
    respond = _kraft if context.kafka_version.is_kraft else _zookeeper
    results = tuple(respond(requested, quota, context))
    _forget({one.name: one.topic_id for one in results if one.name is not None and not one.error_code}, context)
    return context.coordinator.log.then(
        lambda: DeleteTopicsResponse(throttle_time_ms=quota.throttle_ms, responses=results)
    )


def is_disabled(context: RequestContext) -> bool:
    """Return whether all topics are refused, since topics cannot be deleted."""
    is_enabled = context.settings.current.bool("delete.topic.enable")
    return not is_enabled and context.behavior(DeleteTopicsBehavior).refuses_if_disabled


def _forget(deleted: Mapping[str, bytes], context: RequestContext) -> None:
    """Delete what groups have stored of deleted topics, given as ids by name.

    The topics are saved first: if the disk does not take that, topics and offsets stay.
    """
    if not deleted:
        return
    context.cluster.save()
    if TRANSACTION_TOPIC in deleted:
        context.transactions.forget()
    if SHARE_STATE_TOPIC in deleted:
        context.share_groups.forget_states()
    elif SHARE_STATE_TOPIC in context.cluster.topics:
        context.share_groups.forget_topics(set(deleted.values()), context.now_ms)
    if OFFSETS_TOPIC in deleted:
        # All groups were in its partitions. The next FindCoordinator creates the topic again, empty.
        forget_all(context.coordinator)
    else:
        forget_topics(context.coordinator, list(deleted), context.now_ms)


def _result(requested: TopicNameOrId, error: ErrorCode, message: str | None = None) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=requested.name, topic_id=requested.topic_id, error_code=error, error_message=message
    )


def _zookeeper(
    requested: list[TopicNameOrId], quota: TopicQuota, context: RequestContext
) -> Iterator[DeletableTopicResult]:
    if not context.behavior(DuplicateTopicsBehavior).returns_each_duplicate:
        requested = list(dict.fromkeys(requested))
    if not_controller(context):
        yield from (_result(one, ErrorCode.NOT_CONTROLLER) for one in requested)
        return
    if any(one.name is not None and one.topic_id != ZERO_UUID for one in requested):
        yield from (_result(one, ErrorCode.INVALID_REQUEST) for one in requested)
        return
    found = [one.find(context.cluster) for one in requested]
    for one, topic in zip(requested, found, strict=True):
        if topic is not None:
            yield _delete(TopicNameOrId(topic.name, one.topic_id), topic, quota, context)
        elif one.topic_id != ZERO_UUID:
            yield _result(one, ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            # Without a name and an id, a broker responds as if the client may not see the topic.
            no_name = one.name is None
            yield _result(
                one, ErrorCode.TOPIC_AUTHORIZATION_FAILED if no_name else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )


def _kraft(
    requested: list[TopicNameOrId], quota: TopicQuota, context: RequestContext
) -> Iterator[DeletableTopicResult]:
    names = duplicate_counts(one.name for one in requested if one.name is not None and one.topic_id == ZERO_UUID)
    ids = duplicate_counts(one.topic_id for one in requested if one.name is None)
    supplied = {one.topic_id for one in requested if one.name is None}
    doubly_named = set()
    for one in requested:
        topic = one.find(context.cluster)
        if one.name is not None and one.topic_id == ZERO_UUID and topic is not None and topic.topic_id in supplied:
            doubly_named.add(topic.topic_id)
    for one in dict.fromkeys(requested):
        if one.name is None and one.topic_id in doubly_named and one.topic_id not in ids:
            continue  # its name is refused below
        yield _kraft_one(one, one.name in names, one.topic_id in ids, doubly_named, quota, context)


def _kraft_one(
    requested: TopicNameOrId,
    is_duplicate_name: bool,
    is_duplicate_id: bool,
    doubly_named: set[bytes],
    quota: TopicQuota,
    context: RequestContext,
) -> DeletableTopicResult:
    has_id = requested.topic_id != ZERO_UUID
    topic = requested.find(context.cluster)
    if requested.name is not None and has_id:
        return _invalid(requested, "You may not specify both topic name and topic id.")
    if requested.name is None and not has_id:
        return _invalid(requested, "Neither topic name nor id were specified.")
    if is_duplicate_name or is_duplicate_id:
        return _invalid(requested, "Duplicate topic name." if is_duplicate_name else "Duplicate topic id.")
    if topic is None:
        error = ErrorCode.UNKNOWN_TOPIC_ID if has_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _result(requested, error, error.message)
    named = TopicNameOrId(topic.name, topic.topic_id)
    if topic.topic_id in doubly_named:
        return _invalid(named, "The provided topic name maps to an ID that was already supplied.")
    return _delete(named, topic, quota, context)


def _invalid(requested: TopicNameOrId, message: str) -> DeletableTopicResult:
    return _result(requested, ErrorCode.INVALID_REQUEST, message)


def _delete(named: TopicNameOrId, topic: Topic, quota: TopicQuota, context: RequestContext) -> DeletableTopicResult:
    refused = quota.take(len(topic.partitions))
    if refused is not None:
        return _result(named, *refused)
    if not context.settings.current.bool("delete.topic.enable"):
        return _result(named, ErrorCode.REQUEST_TIMED_OUT)
    context.cluster.delete_topic(topic.name)
    return _result(named, ErrorCode.NONE)
