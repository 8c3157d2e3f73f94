"""Queries of the requests that a running broker has received, for tests."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypedDict, Unpack

from kproto.codes import ErrorCode
from kproto.messages import APIS
from kproto_server.observation.logged import LoggedRequest, logged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.network.server import Server
    from kproto_server.observation.request_log import Entry, RequestLog

CHECK_S = 0.005
"""How often `wait` looks at the request log."""
KEYS = {name: key for key, name in APIS.items()}


class RequestFilter(TypedDict, total=False):
    """Conditions on a request; a request has to meet all that are given."""

    api: str | int
    """Kafka's name of an API, or its key: ``"OffsetCommit"``."""
    version: int
    client_id: str
    group: str
    """A group id that the request names."""
    error: str | int
    """An error code in the response, by number or by Kafka's name; 0: a response without error codes."""
    node_id: int


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
            ValueError: no API or no error has the given name.
        """
        return tuple(_chosen(self, wanted))

    def wait(
        self, *, count: int = 1, timeout_s: float = 10.0, **wanted: Unpack[RequestFilter]
    ) -> tuple[LoggedRequest, ...]:
        """Wait until ``count`` requests meet the conditions, and return them.

        Raises:
            TimeoutError: fewer requests meet them after ``timeout_s`` of real time.
            ValueError: no API or no error has the given name.
        """
        deadline = time.monotonic() + timeout_s
        pause = threading.Event()
        while len(found := self.where(**wanted)) < count:
            if time.monotonic() > deadline:
                asked = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
                raise TimeoutError(f"{len(found)} requests with {asked or 'anything'}, not {count}")
            pause.wait(CHECK_S)
        return found

    def clear(self) -> None:
        """Delete the requests received so far."""
        self._run(lambda server: _log_of(server).clear())

    def _entries(self) -> list[Entry]:
        return self._run(lambda server: _log_of(server).entries())


def _log_of(server: Server) -> RequestLog:
    if server.request_log is None:
        raise RuntimeError("this broker keeps no requests: it was started with requests_kept=0")
    return server.request_log


def _chosen(requests: BrokerRequests, wanted: RequestFilter) -> Iterator[LoggedRequest]:
    key = _api_key(wanted["api"]) if "api" in wanted else None
    error = _error_code(wanted["error"]) if "error" in wanted else None
    for request in requests:
        if (
            key in (None, request.api_key)
            and wanted.get("version", request.api_version) == request.api_version
            and wanted.get("client_id", request.client_id) == request.client_id
            and wanted.get("node_id", request.node_id) == request.node_id
            and ("group" not in wanted or wanted["group"] in request.group_ids)
            and (error is None or _has(request, error))
        ):
            yield request


def _has(request: LoggedRequest, error: int) -> bool:
    if error:
        return error in request.error_codes
    return request.responded_ms is not None and not request.error_codes


def _api_key(api: str | int) -> int:
    if isinstance(api, int):
        return api
    if api not in KEYS:
        raise ValueError(f"there is no API {api!r}")
    return KEYS[api]


def _error_code(error: str | int) -> int:
    if isinstance(error, int):
        return int(error)
    try:
        return int(ErrorCode[error])
    except KeyError:
        raise ValueError(f"there is no error {error!r}") from None
