"""The resources that have configs, as the config APIs number them."""

from __future__ import annotations

import enum
from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext


INT32 = range(-(2**31), 2**31)
INT32_DIGITS = 10


class ResourceType(enum.IntEnum):
    """The type of a resource."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResourceBehavior(VersionBehavior):
    """What Kafka releases do differently in resources."""

    @cached_property
    def resource_types(self) -> frozenset[int]:
        """The resource types that the release knows (BA-92): broker loggers from 2.4 on (measured on 2.1.1 and 2.4.1),
        client metrics from 3.7 on (measured on 3.3.2 and 3.7.2), groups from 4.0 on (measured on 3.9.2 and 4.4.0)."""
        since = {
            ResourceType.TOPIC: (0,),
            ResourceType.BROKER: (0,),
            ResourceType.BROKER_LOGGER: (2, 4),
            ResourceType.CLIENT_METRICS: (3, 7),
            ResourceType.GROUP: (4, 0),
        }
        return frozenset(kind for kind, release in since.items() if self.at_least(*release))


def check_broker_id(name: str, context: RequestContext, *, expected: str, noun: str = "Broker") -> Refusal | None:
    """Refuse a resource name that is not the id of the node that received the request.

    ``expected``: what the error message says that the broker expected, with ``{}`` for its id.
    """
    digits = name[1:] if name[:1] in ("-", "+") else name
    is_short = len(digits.lstrip("0")) <= INT32_DIGITS
    if not (digits.isdigit() and name.isascii() and is_short and int(name) in INT32):
        return Refusal(ErrorCode.INVALID_REQUEST, f"{noun} id must be an integer, but it is: {name}")
    node_id = context.node.node_id
    if int(name) != node_id:
        message = f"Unexpected broker id, expected {expected.format(node_id)} but received {name}"
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    return None
