"""Queries of the requests that a running broker has received, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from kproto_server.broker.request_filter import Subjects, request_filter
from kproto_server.broker.waiting import NotYet, Wait, blocking, check_count, in_coroutine
from kproto_server.observation.logged import LoggedRequest, logged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kproto_server.broker.request_filter import RequestFilter
    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.network.server import Server
    from kproto_server.observation.request_log import Entry, RequestLog


class BrokerRequests:
    """The newest requests of a running broker, oldest first. Each call sees the requests that arrived before it.

    Raises:
        RuntimeError: (from all methods) the broker keeps no requests (``requests_kept=0``).
    """

    def __init__(self, run: RunInBrokerThread, subjects: Callable[[], Subjects]) -> None:
        """``subjects``: returns what conditions on requests need to know."""
        self._run = run
        self.subjects: Callable[[], Subjects] = subjects

    def __iter__(self) -> Iterator[LoggedRequest]:
        return map(logged, self._entries())

    def __len__(self) -> int:
        """Return the number of requests kept."""
        return len(self._entries())

    @property
    def dropped(self) -> int:
        """The number of requests dropped, because the log keeps ``requests_kept`` requests and 32 MiB at most."""
        return self._run(lambda server: log_of(server).dropped)

    def where(self, **wanted: Unpack[RequestFilter]) -> tuple[LoggedRequest, ...]:
        """Return the requests that meet the conditions.

        Raises:
            UsageError: there is no such filter, API, error or node, or no request of the API can meet the conditions.
        """
        return self._found(wanted, ())

    def numbered(self, number: int) -> LoggedRequest | None:
        """Return the request with a number; None: it is not kept, or has not come yet."""
        entry = self._run(lambda server: log_of(server).numbered(number))
        return None if entry is None else logged(entry)

    @blocking
    def wait(
        self, *, count: int = 1, timeout_s: float = 10.0, **wanted: Unpack[RequestFilter]
    ) -> Wait[tuple[LoggedRequest, ...]]:
        """Wait until ``count`` requests meet the conditions, and return them.

        Raises:
            TimeoutError: fewer requests meet them after ``timeout_s`` of real time.
            UsageError: as for `where`, or ``count`` or ``timeout_s`` is no number from 0 on.
        """
        check_count(count)

        def look() -> tuple[LoggedRequest, ...] | NotYet:
            found = self._found(wanted, ("count", "timeout_s"))
            if len(found) >= count:
                return found
            asked = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
            return NotYet(f"{len(found)} requests with {asked or 'anything'}, not {count}")

        return Wait(look, timeout_s)

    @in_coroutine(wait)
    def wait_async(self) -> None:
        """As `wait`, for a coroutine: other tasks run meanwhile."""

    def summary(self) -> str:
        """Return the newest requests with their responses as text, those with errors first."""
        from kproto_server.broker.last_requests import last_requests  # few tests need it

        return last_requests(self)

    def begin(self) -> None:
        """Keep requests from now on, if the broker was started to keep them later; otherwise nothing happens."""

        def begin(server: Server) -> None:
            if server.request_log is not None:
                server.request_log.is_on = True

        self._run(begin)

    def clear(self) -> None:
        """Delete the requests received so far."""
        self._run(lambda server: log_of(server).clear())

    def _found(self, wanted: Mapping[str, Any], others: tuple[str, ...]) -> tuple[LoggedRequest, ...]:
        is_met = request_filter(wanted, self.subjects(), others)
        return tuple(filter(is_met, self))

    def _entries(self) -> list[Entry]:
        return self._run(lambda server: log_of(server).entries())


def log_of(server: Server) -> RequestLog:
    """Return the request log; it is an error of the caller if the broker keeps no requests."""
    if server.request_log is None:
        raise RuntimeError("this broker keeps no requests: it was started with requests_kept=0")
    return server.request_log


def subjects_of(server: Server) -> Subjects:
    """Return what conditions on requests need to know of the broker."""
    cluster, log = server.state.cluster, log_of(server)
    existing = {topic.topic_id: topic.name for topic in cluster.topics.values()}
    return Subjects(tuple(cluster.nodes), {**log.deleted_topics, **existing})
