"""FindCoordinator (API key 10): the node that coordinates a group or a transactional id (BA-40..45, KIP-115)."""

from __future__ import annotations

import enum
import re
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from kproto.codes import ErrorCode
from kproto.messages.k10_find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kproto_server.cluster.auto_creation import save_if_possible
from kproto_server.deferred import CloseConnection
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto_server.cluster.cluster import Node
    from kproto_server.requests.context import RequestContext

BATCHED_SINCE = 4
SHARE_SINCE = 6
SHARE_KEY = re.compile(r"\s*\S.*:[A-Za-z0-9_-]{22}:[0-9]{1,9}", re.DOTALL)
"""Group id, topic id in base64, and partition."""


class KeyType(enum.IntEnum):
    """The type of a key."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


_KEY_TYPES = {key_type.value: key_type for key_type in KeyType}

NO_NODE = -1
NO_PORT = -1


class Found(NamedTuple):
    """The coordinator of one key, or an error."""

    error: ErrorCode
    node: Node | None = None


class FindCoordinatorBehavior(VersionBehavior):
    """What Kafka releases do differently in FindCoordinator."""

    def success_message(self, api_version: int) -> str | None:
        """Return the error_message for a coordinator that was found; v0 has no such field (BA-41; measured on 2.2.2 and
        2.3.1)."""
        if api_version >= BATCHED_SINCE:
            return ""
        return "NONE" if self.at_least(2, 3) else None

    def error_message(self, error: ErrorCode) -> str | None:
        """Return the error_message of v1 to v3 if no coordinator was found (BA-42; measured on 2.2.2 and 2.3.1)."""
        return error.message if self.at_least(2, 3) else None

    @cached_property
    def responds_to_unknown_type(self) -> bool:
        """Whether an unknown coordinator type gives an error: from 2.3 on. Before, it closes the connection (BA-43;
        measured on 2.2.2 and 2.3.1)."""
        return self.at_least(2, 3)

    @cached_property
    def has_share_coordinators(self) -> bool:
        """Whether there are share coordinators (measured on 3.9.2 and 4.0.2)."""
        return self.at_least(4, 0)

    @cached_property
    def unknown_type_error(self) -> ErrorCode:
        """The error for an unknown coordinator type: UNKNOWN_SERVER_ERROR up to 2.7, then INVALID_REQUEST (measured on
        2.3.1 to 2.7.2 and 2.8.2)."""
        return ErrorCode.INVALID_REQUEST if self.at_least(2, 8) else ErrorCode.UNKNOWN_SERVER_ERROR


def handle(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    response = _response(request, context)
    save_if_possible(context.cluster)
    return response


def _response(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    key_type = _key_type(request.key_type, context)
    if context.api_version >= BATCHED_SINCE:
        # An unknown key type has an error message, other errors of a key have none.
        text = ErrorCode.INVALID_REQUEST.message if key_type is None else ""
        return FindCoordinatorResponse(
            coordinators=tuple(
                _coordinator(key, _find(key, key_type, context), text, context) for key in request.coordinator_keys
            )
        )
    error, node = _find(request.key, key_type, context)
    behavior = context.behavior(FindCoordinatorBehavior)
    message = behavior.error_message(error) if node is None else behavior.success_message(context.api_version)
    return FindCoordinatorResponse(
        error_code=error, error_message=message, **_address(node, context.connection.listener)
    )


def _key_type(number: int, context: RequestContext) -> KeyType | None:
    """Return the type of the keys; None if the release does not know it and responds with an error (BA-43)."""
    if number == KeyType.SHARE and not context.kafka_version.serves(context.api_key, SHARE_SINCE):
        number = -1
    found = _KEY_TYPES.get(number)
    if found is None and not context.behavior(FindCoordinatorBehavior).responds_to_unknown_type:
        raise CloseConnection(f"FindCoordinator: no coordinator type {number}")
    return found


def _coordinator(key: str, found: Found, error_message: str, context: RequestContext) -> Coordinator:
    address = _address(found.node, context.connection.listener)
    return Coordinator(key=key, error_code=found.error, error_message=error_message, **address)


def _find(key: str, key_type: KeyType | None, context: RequestContext) -> Found:
    cluster = context.cluster
    match key_type:
        case KeyType.GROUP:
            node = cluster.coordinator_of(key)
            topic_name = OFFSETS_TOPIC
        case KeyType.TRANSACTION:
            node = cluster.transaction_coordinator_of(key)
            topic_name = TRANSACTION_TOPIC
        case KeyType.SHARE:
            return _find_share_coordinator(key, context)
        case None:
            return Found(context.behavior(FindCoordinatorBehavior).unknown_type_error)
    if node is not None:
        return Found(ErrorCode.NONE, node)
    # The topic is created now, if possible; the client's next request finds it (BA-45, BA-53).
    cluster.ensure_internal_topic(topic_name, context.now_ms)
    return Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _find_share_coordinator(key: str, context: RequestContext) -> Found:
    """Return the coordinator of a share partition; the key is "group:topic id:partition"."""
    is_supported = context.behavior(FindCoordinatorBehavior).has_share_coordinators
    if not is_supported or context.api_version < SHARE_SINCE or SHARE_KEY.fullmatch(key) is None:
        # DEVIATION: 3.9 has an unfinished share coordinator, which is never available.
        return Found(ErrorCode.INVALID_REQUEST)
    node = context.cluster.share_coordinator_of(key)
    if node is not None:
        return Found(ErrorCode.NONE, node)
    context.cluster.ensure_internal_topic(SHARE_STATE_TOPIC, context.now_ms)
    return Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)


class _Address(TypedDict):
    node_id: int
    host: str
    port: int


def _address(node: Node | None, listener: str) -> _Address:
    if node is None:
        return {"node_id": NO_NODE, "host": "", "port": NO_PORT}
    host, port = node.address(listener)
    return {"node_id": node.node_id, "host": host, "port": port}
