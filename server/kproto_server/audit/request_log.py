"""Count the clients' requests of a request log as a broker of kproto counts them.

Theory of operation. A broker's log has the requests of its clients and those that brokers and controllers send each
other. The API of a request, the id of a follower in it or the controllers' listener shows its sender; ApiVersions and
old versions of OffsetForLeaderEpoch show nothing. So these requests wait until their connection has sent another
request, which decides. A connection that is forgotten, as the one that was silent for longest, counts as a client's if
nothing has decided.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from kproto_server.audit.log_lines import COMPLETED, OFFSET_COMMIT, logged_request
from kproto_server.audit.senders import API_VERSIONS, CONTROLLER_APIS, is_of_broker, shows_sender
from kproto_server.requests.context import ConnectionInfo

if TYPE_CHECKING:
    from kproto_server.audit.log_lines import LoggedRequest
    from kproto_server.observation.observe import Observations

CONNECTIONS_MAX = 10_000
"""Connections that are followed at a time; the one that was silent for longest is forgotten. A broker has hundreds."""
WAITING_MAX = 100
"""Requests that wait on one connection; a client sends one or two."""
LISTENERS_MAX = 100

RETENTION_VERSIONS = (2, 3, 4)


class _Connection:
    """One connection of a log."""

    __slots__ = ("info", "is_brokers", "waiting")

    def __init__(self, client_host: str) -> None:
        self.info = ConnectionInfo(f"/{client_host}")
        self.is_brokers: bool | None = None
        """None: no request has shown it."""
        self.waiting: list[LoggedRequest] = []


class RequestLog:
    """The requests of one or more logs: `read` takes their lines, `end` those that wait."""

    def __init__(self, observations: Observations) -> None:
        self.line_count: int = 0
        self.other_line_count: int = 0
        """Lines that are not about a completed request."""
        self.unreadable_count: int = 0
        """Lines of a request that are cut or of an unknown format."""
        self.request_count: int = 0
        """Requests of clients."""
        self.broker_request_count: int = 0
        """Requests that brokers and controllers sent, and copies of clients' requests that brokers forwarded."""
        self.has_text: bool = False
        """Whether a broker older than 2.8 wrote a line."""
        self._observations = observations
        self._connections: OrderedDict[str, _Connection] = OrderedDict()
        self._controller_listeners: set[str] = set()

    @property
    def completed_count(self) -> int:
        """Return the number of readable requests so far, of clients and brokers."""
        return self.line_count - self.other_line_count - self.unreadable_count

    def read(self, line: bytes) -> None:
        """Count one line."""
        self.line_count += 1
        if COMPLETED not in line:
            self.other_line_count += 1
            return
        request = logged_request(line.decode(errors="replace"))
        if request is None:
            self.unreadable_count += 1
            return
        self.has_text = self.has_text or not request.is_json
        self._count(request)

    def end(self) -> None:
        """Count the requests that still wait; `read` is not called again."""
        while self._connections:
            self._forget(next(iter(self._connections)))

    def _count(self, request: LoggedRequest) -> None:
        connection = self._connection(request)
        is_brokers = self._is_of_brokers(request)
        if connection.is_brokers is None and (is_brokers or shows_sender(request.api_key, request.api_version)):
            connection.is_brokers = is_brokers
            self._count_waiting(connection)
        if is_brokers or connection.is_brokers:
            self.broker_request_count += 1
        elif connection.is_brokers is None and len(connection.waiting) < WAITING_MAX:
            connection.waiting.append(request)
        else:
            self._count_client(connection, request)

    def _connection(self, request: LoggedRequest) -> _Connection:
        """Return the connection of a request, with the software that is known by now."""
        key = request.connection
        software = request.software_name, request.software_version
        connection = self._connections.get(key)
        if connection is not None and software[0]:
            before = connection.info.software_name, connection.info.software_version
            if before[0] and before != software:  # another client with the same addresses
                self._forget(key)
                connection = None
        if connection is None:
            if len(self._connections) >= CONNECTIONS_MAX:
                self._forget(next(iter(self._connections)))
            connection = self._connections[key] = _Connection(request.client_host)
        else:
            self._connections.move_to_end(key)
        if software[0]:
            connection.info.software_name, connection.info.software_version = software
        if request.principal:
            connection.info.principal = request.principal
        return connection

    def _is_of_brokers(self, request: LoggedRequest) -> bool:
        """Return whether a broker or a controller sent the request."""
        key = request.api_key
        if key in CONTROLLER_APIS and len(self._controller_listeners) < LISTENERS_MAX:
            self._controller_listeners.add(request.listener)
        return (
            request.is_forwarded
            or is_of_broker(key, request.api_version, request.replica_id)
            or (request.listener in self._controller_listeners and key != API_VERSIONS)
        )

    def _count_waiting(self, connection: _Connection) -> None:
        waiting, connection.waiting = connection.waiting, []
        if connection.is_brokers:
            self.broker_request_count += len(waiting)
            return
        for request in waiting:
            self._count_client(connection, request)

    def _count_client(self, connection: _Connection, request: LoggedRequest) -> None:
        self.request_count += 1
        info, row = connection.info, (request.client_id, request.api_key, request.api_version)
        self._observations.request(info, *row)
        if request.api_key == OFFSET_COMMIT and request.api_version in RETENTION_VERSIONS:
            # No broker was ever released with the version 4 of KIP-211.
            layout = "v4 as released" if request.api_version == 4 else f"v{request.api_version}"
            self._observations.commit_layout(
                info, request.client_id, request.api_version, layout, request.retention_time_ms
            )
        if request.error_codes:
            self._observations.errors(info, *row, request.error_codes)

    def _forget(self, key: str) -> None:
        connection = self._connections.pop(key)
        self._count_waiting(connection)
        self._observations.disconnected(connection.info)
