"""The topics that a client may see, as a handler looks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID
from kproto.messages.k75_describe_topic_partitions import DescribeTopicPartitionsResponseTopic
from kproto_server.authorization.checks import changed
from kproto_server.handlers import _operations
from kproto_server.security.acls import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto_server.authorization.checks import Asked, Perform
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Topic
    from kproto_server.requests.context import RequestContext

REQUEST_ERRORS = (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR)
"""Errors that all topics of a DescribeTopicPartitions request have."""


class VisibleTopics:
    """A cluster without some of its topics, which do not exist for the handler of one request."""

    def __init__(self, cluster: Cluster, hidden: Collection[str]) -> None:
        self._cluster = cluster
        self._hidden = hidden

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    @property
    def topics(self) -> dict[str, Topic]:
        """The other topics, by name."""
        return {name: topic for name, topic in self._cluster.topics.items() if name not in self._hidden}

    def topic(self, name: str) -> Topic | None:
        """Return a topic, as `Cluster.topic`."""
        return None if name in self._hidden else self._cluster.topic(name)

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        """Return a topic, as `Cluster.topic_by_id`."""
        topic = self._cluster.topic_by_id(topic_id)
        return None if topic is None or topic.name in self._hidden else topic


def hide(topics: Collection[str], context: RequestContext) -> None:
    """Hide topics from the handler of a request."""
    if topics:
        cluster: Any = VisibleTopics(context.cluster, topics)
        context.cluster = cluster


def describe_topic_partitions(asked: Asked, perform: Perform) -> Any:
    """Topics need DESCRIBE; all topics are those that the client may see."""
    request, rights = asked.request, asked.rights
    names = [one.name for one in request.topics]
    wanted = names or asked.context.cluster.topics
    hidden = {name for name in wanted if not rights.on_topic(Operation.DESCRIBE, name)}
    hide(hidden, asked.context)

    def finished(response: Any) -> Any:
        if any(one.error_code in REQUEST_ERRORS for one in response.topics):
            return response
        topics = tuple(
            one.replace(
                topic_authorized_operations=rights.bits(one.topic_authorized_operations, ResourceType.TOPIC, one.name)
            )
            if one.topic_authorized_operations > 0
            else one
            for one in response.topics
            if one.name not in hidden
        )
        first = request.cursor.topic_name if request.cursor else ""
        denied = (_not_described(name) for name in sorted(hidden.intersection(names)) if name >= first)
        return response.replace(topics=(*topics, *denied))

    return changed(perform(request), finished)


def _not_described(name: str) -> DescribeTopicPartitionsResponseTopic:
    """Return what a client receives of a topic that it names and may not see."""
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=False,
        partitions=(),
        topic_authorized_operations=_operations.NOT_REQUESTED,
    )
