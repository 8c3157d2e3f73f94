"""Requests that a test has the broker handle: its own handlers respond, as they do to a client.

They have no connection. So no fault rule acts on them, the network does not delay them, and neither the request log nor
the observations have them.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from kproto.codes import ErrorCode
from kproto.errors import KprotoError
from kproto_server import handlers
from kproto_server.broker.waiting import CHECK_S
from kproto_server.cluster.auto_creation import save_if_possible
from kproto_server.deferred import DeferredResponse, DelayedOperation, Failure, LargeResponse
from kproto_server.requests.context import ConnectionInfo, RequestContext
from kproto_server.requests.endpoint import perform

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.errors import StringTooLong
    from kproto.message import Request
    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.cluster.node import Node
    from kproto_server.cluster.topics import TopicsNotStored
    from kproto_server.network.server import Server

T = TypeVar("T")

LOADING_S = 5.0
CLIENT_ID = "kproto"
CLIENT = ConnectionInfo("/127.0.0.1", CLIENT_ID)


class RequestRefused(KprotoError):
    """The broker refuses what a test asks for; ``error`` is the code that a client would receive."""

    def __init__(self, subject: str, error: int, message: str | None = None) -> None:
        self.error: ErrorCode = ErrorCode(error)
        super().__init__(f"{subject}: {self.error.name}: {message or self.error.message}")


def ask(server: Server, request: Request, version: int, node_id: int | None = None) -> Any:
    """Return the response to a request; the log has what the request has changed.

    ``version``: the newest one to use; ``node_id``: the node that handles it; None: the controller.
    """
    state = server.state
    key = type(request)._api_key
    if key in state.kafka_version.api_versions:
        version = min(version, state.kafka_version.api_versions[key][1])
    cluster = state.cluster
    node = cluster.nodes.get(cluster.controller_id if node_id is None else node_id)
    context = RequestContext(
        coordinator=state.coordinator,
        cluster=cluster,
        settings=state.settings,
        parts=state,
        node=node or next(iter(cluster.nodes.values())),
        connection=CLIENT,
        api_key=key,
        api_version=version,
        client_id=CLIENT_ID,
        now_ms=state.clock.now_ms(),
    )

    def fail(request: Request, error: StringTooLong | TopicsNotStored) -> Any:
        return handlers.failure(request, version, error)

    return _response(server, perform(handlers.handler(key), fail, request, context))


def _response(server: Server, result: Any) -> Any:
    """Return the response of a handler that may wait for the log or for its turn."""
    while True:
        if isinstance(result, DeferredResponse):
            delivered: list[Any] = []
            result.deliver = delivered.append
            server.drain()
            (result,) = delivered
            if isinstance(result, Failure):
                result.respond()
        elif isinstance(result, DelayedOperation):
            result = result.respond()
        else:
            return result.response if isinstance(result, LargeResponse) else result


def when_loaded(run: RunInBrokerThread, action: Callable[[Server], T]) -> T:
    """Run an action in the broker's thread; again, as a client does, while a coordinator loads a data directory.

    Raises:
        RequestRefused: the action has raised it; after `LOADING_S`, also if the coordinator still loads.
    """
    deadline_s = time.monotonic() + LOADING_S
    pause = threading.Event()
    while True:
        try:
            return run(action)
        except RequestRefused as error:
            if error.error != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or time.monotonic() > deadline_s:
                raise
        pause.wait(CHECK_S)


def check(subject: str, error: int, message: str | None = None) -> None:
    """Raise the error of a response.

    Raises:
        RequestRefused: the error code is not 0.
    """
    if error:
        raise RequestRefused(subject, error, message)


def coordinator_of(server: Server, topic: str, key: str, subject: str) -> Node:
    """Return the node that coordinates a key; ``topic``: the internal topic, created if it is missing.

    Raises:
        RequestRefused: the topic cannot be created, or the partition of the key has no leader.
    """
    cluster = server.state.cluster
    exists = cluster.ensure_internal_topic(topic, server.state.clock.now_ms())
    save_if_possible(cluster)
    node = cluster.coordinator_for(topic, key) if exists else None
    if node is None:
        raise RequestRefused(subject, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return node
