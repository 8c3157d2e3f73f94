"""The quota of a client for changes of topics: partitions that it creates and deletes per second (KIP-599)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.quotas.entities import CONTROLLER_MUTATION_RATE
from kproto_server.quotas.groups import group_of
from kproto_server.quotas.rate import Window

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext

STRICT_SINCE = {19: 6, 20: 5, 37: 3}
"""The versions from which on changes above the quota are refused; before, the client is throttled only. Metadata, which
creates topics, too, is not throttled."""
CONTROLLER = 0
"""In place of a node: the controller has the tokens of all."""
EXCEEDED = Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED)


class TopicQuota:
    """What one request may change of topics."""

    def __init__(self, context: RequestContext) -> None:
        user = context.connection.principal.partition(":")[2]
        key = CONTROLLER_MUTATION_RATE
        group = group_of(context.cluster.client_quotas, key, user, context.client_id)
        self.is_limited: bool = group is not None
        """Whether the client has such a quota."""
        self.throttle_ms: int = 0
        """The throttle time of the response."""
        since = STRICT_SINCE.get(context.api_key)
        # A KRaft broker asks the controller in the newest version; one with ZooKeeper creates the topic.
        self._is_strict = context.kafka_version.is_kraft if since is None else context.api_version >= since
        if group is None:
            return
        current = context.settings.current
        self._now_ms, self._quota = context.now_ms, group.quota
        self._window = Window(
            current.int("controller.quota.window.num"), current.int("controller.quota.window.size.seconds") * 1000
        )
        self._bucket = context.cluster.quota_usage.bucket(
            (CONTROLLER, key, group.user, group.client_id), group.quota, self._window, context.now_ms
        )

    def take(self, partition_count: int) -> Refusal | None:
        """Take a change of so many partitions from the quota, or return why it is refused."""
        if not self.is_limited:
            return None
        if self._is_strict:
            self.throttle_ms = self._due_ms()
            if self.throttle_ms:
                return EXCEEDED
        self._bucket.take(partition_count, self._quota, self._window, self._now_ms)
        if not self._is_strict:
            self.throttle_ms = self._due_ms()
        return None

    def _due_ms(self) -> int:
        return self._bucket.throttle_ms(self._quota, self._window, self._now_ms)
