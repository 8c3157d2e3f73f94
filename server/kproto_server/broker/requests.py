"""Queries of the requests that a running broker has received, for tests."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Unpack

from kproto.errors import UsageError
from kproto_server.broker.request_filter import Subjects, request_filter
from kproto_server.observation.logged import LoggedRequest, logged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kproto_server.broker.request_filter import RequestFilter
    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.network.server import Server
    from kproto_server.observation.request_log import Entry, RequestLog

CHECK_S = 0.005
"""How often `wait` looks at the request log."""


class BrokerRequests:
    """The newest requests of a running broker, oldest first. Each call sees the requests that arrived before it.

    Raises:
        RuntimeError: (from all methods) the broker keeps no requests (``requests_kept=0``).
    """

    def __init__(self, run: RunInBrokerThread) -> None:
        self._run = run

    def __iter__(self) -> Iterator[LoggedRequest]:
        return map(logged, self._entries())

    def __len__(self) -> int:
        """Return the number of requests kept."""
        return len(self._entries())

    @property
    def dropped(self) -> int:
        """The number of requests dropped, because the log keeps ``requests_kept`` requests and 32 MiB at most."""
        return self._run(lambda server: _log_of(server).dropped)

    def where(self, **wanted: Unpack[RequestFilter]) -> tuple[LoggedRequest, ...]:
        """Return the requests that meet the conditions.

        Raises:
            UsageError: there is no such filter, API, error or node, or no request of the API can meet the conditions.
        """
        return self._found(wanted, ())

    def wait(
        self, *, count: int = 1, timeout_s: float = 10.0, **wanted: Unpack[RequestFilter]
    ) -> tuple[LoggedRequest, ...]:
        """Wait until ``count`` requests meet the conditions, and return them.

        Raises:
            TimeoutError: fewer requests meet them after ``timeout_s`` of real time.
            UsageError: as for `where`, or ``count`` or ``timeout_s`` is no number from 0 on.
        """
        if type(count) is not int or count < 0:
            raise UsageError(f"count is a number from 0 on, not {count!r}")
        if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not timeout_s >= 0:
            raise UsageError(f"timeout_s is a number of seconds from 0 on, not {timeout_s!r}")
        deadline = time.monotonic() + timeout_s
        pause = threading.Event()
        while len(found := self._found(wanted, ("count", "timeout_s"))) < count:
            if time.monotonic() > deadline:
                asked = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
                raise TimeoutError(f"{len(found)} requests with {asked or 'anything'}, not {count}")
            pause.wait(CHECK_S)
        return found

    def clear(self) -> None:
        """Delete the requests received so far."""
        self._run(lambda server: _log_of(server).clear())

    def _found(self, wanted: Mapping[str, Any], others: tuple[str, ...]) -> tuple[LoggedRequest, ...]:
        is_met = request_filter(wanted, self._run(_subjects), others)
        return tuple(filter(is_met, self))

    def _entries(self) -> list[Entry]:
        return self._run(lambda server: _log_of(server).entries())


def _log_of(server: Server) -> RequestLog:
    if server.request_log is None:
        raise RuntimeError("this broker keeps no requests: it was started with requests_kept=0")
    return server.request_log


def _subjects(server: Server) -> Subjects:
    cluster, log = server.state.cluster, _log_of(server)
    existing = {topic.topic_id: topic.name for topic in cluster.topics.values()}
    return Subjects(tuple(cluster.nodes), {**log.deleted_topics, **existing})
