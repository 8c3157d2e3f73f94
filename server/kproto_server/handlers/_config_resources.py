"""The resources that have configs, as the config APIs number them."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext


class ResourceType(enum.IntEnum):
    """The type of a resource."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def check_broker_id(name: str, context: RequestContext, *, expected: str, noun: str = "Broker") -> Refusal | None:
    """Refuse a resource name that is not the id of the node that received the request.

    ``expected``: what the error message says that the broker expected, with ``{}`` for its id.
    """
    if not (name.removeprefix("-").isdigit() and name.isascii()):
        return Refusal(ErrorCode.INVALID_REQUEST, f"{noun} id must be an integer, but it is: {name}")
    node_id = context.node.node_id
    if int(name) != node_id:
        message = f"Unexpected broker id, expected {expected.format(node_id)} but received {name}"
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    return None
