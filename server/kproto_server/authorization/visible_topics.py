"""The topics that a client may see, as a handler looks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Topic
    from kproto_server.requests.context import RequestContext


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
