"""Topics that do not exist for a client which may not describe them, as in Kafka up to 0.11 (KAFKA-5547)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto_server.authorization.checks import changed
from kproto_server.deferred import changed_array
from kproto_server.faults.items import ERROR_FIELDS, level_of
from kproto_server.releases.release import VersionBehavior
from kproto_server.security.acls import Operation

if TYPE_CHECKING:
    from kproto_server.authorization.checks import Asked, Perform
    from kproto_server.faults.items import Level


class HiddenTopicsBehavior(VersionBehavior):
    """What Kafka releases do differently with topics that a client may not describe."""

    @cached_property
    def hides_topics(self) -> bool:
        """Whether they are UNKNOWN_TOPIC_OR_PARTITION, and not TOPIC_AUTHORIZATION_FAILED (measured on 0.11.0.3 and
        1.0.2)."""
        return not self.at_least(1, 0)


def hides_topics(asked: Asked, perform: Perform) -> Any:
    """Topics that the client may not describe have the error of missing ones."""
    result = perform(asked.request)
    if not asked.context.behavior(HiddenTopicsBehavior).hides_topics:
        return result
    level = level_of(asked.context.api_key, asked.context.api_version)
    assert level is not None, "an API with topics"

    def hidden(topic: Any) -> Any:
        name = topic.topic if hasattr(topic, "topic") else topic.name
        return topic if asked.rights.on_topic(Operation.DESCRIBE, name) else _missing(level, topic)

    return changed(
        result,
        lambda response: response.replace(**{level.array: changed_array(hidden, getattr(response, level.array))}),
    )


def _missing(level: Level, item: Any) -> Any:
    errors = {
        field: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for field in ERROR_FIELDS
        if getattr(item, field, None) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    }
    inner = level.inner
    inside = {} if inner is None else {inner.array: tuple(_missing(inner, one) for one in getattr(item, inner.array))}
    return item.replace(**errors, **inside)
