"""What the requests that change topics have in common."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.requests.context import RequestContext

T = TypeVar("T", str, bytes)


def not_controller(context: RequestContext) -> bool:
    """Whether another broker has to be asked: ZooKeeper brokers do not pass such a request on, KRaft ones do."""
    return not context.kafka_version.is_kraft and context.node.node_id != context.cluster.controller_id


def names_standing_twice(names: Iterable[T]) -> dict[T, int]:
    """Return the names, or ids, that a request has more than once, and how often."""
    return {name: count for name, count in Counter(names).items() if count > 1}
