"""Count the clients' requests of a request log as a broker of kproto counts them.

Theory of operation. A broker's log has the requests of its clients and those that brokers and controllers send each
other. The API of a request, the id of a follower in it or the controllers' listener shows its sender; ApiVersions and
old versions of OffsetForLeaderEpoch show nothing. So these requests wait until their connection has sent another
request, which decides. A connection that is forgotten, as the one that was silent for longest, counts as a client's if
nothing has decided.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from kproto_server.audit.log_lines import API_VERSIONS, COMPLETED, NO_REPLICA, OFFSET_COMMIT, logged_request
from kproto_server.observation.observe import Observations
from kproto_server.observation.observed import Snapshot
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.requests.context import ConnectionInfo

if TYPE_CHECKING:
    from kproto_server.audit.log_lines import LoggedRequest

CONNECTIONS_MAX = 10_000
"""Connections that are followed at a time; the one that was silent for longest is forgotten. A broker has hundreds."""
WAITING_MAX = 100
"""Requests that wait on one connection; a client sends one or two."""
LISTENERS_MAX = 100

CONTROLLER_APIS = frozenset({52, 53, 54, 59, 62, 63, 70, 73, 82})
"""Vote, BeginQuorumEpoch, EndQuorumEpoch, FetchSnapshot, BrokerRegistration, BrokerHeartbeat, ControllerRegistration,
AssignReplicasToDirs and UpdateRaftVoter, which kproto does not have: on the controllers' listener only."""
ADD_PARTITIONS_TO_TXN, BROKERS_ADD_PARTITIONS = 24, 4
"""From this version on only brokers send AddPartitionsToTxn (KIP-890)."""
OFFSET_FOR_LEADER_EPOCH, NAMES_REPLICA = 23, 3
"""From this version on OffsetForLeaderEpoch has the id of a follower. Followers of 0.11 to 2.2 begin with it."""
RETENTION_VERSIONS = (2, 3, 4)


class _Connection:
    """One connection of a log."""

    __slots__ = ("info", "is_brokers", "waiting")

    def __init__(self) -> None:
        self.info = ConnectionInfo("")
        self.is_brokers: bool | None = None
        """None: no request has shown it."""
        self.waiting: list[LoggedRequest] = []


class RequestLog:
    """The requests of one or more logs: `read` takes their lines, then `end` returns what was observed."""

    def __init__(self) -> None:
        self.line_count: int = 0
        self.other_line_count: int = 0
        """Lines that are no completed request."""
        self.unreadable_count: int = 0
        """Lines of a request that are cut or of an unknown format."""
        self.request_count: int = 0
        """Requests of clients."""
        self.broker_request_count: int = 0
        """Requests that brokers and controllers sent, and copies of clients' requests that brokers forwarded."""
        self.has_text: bool = False
        """Whether a broker older than 2.8 wrote a line."""
        self._observations = Observations()
        self._connections: OrderedDict[str, _Connection] = OrderedDict()
        self._controller_listeners: set[str] = set()
        self._newest = KafkaVersion.named()

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

    def end(self) -> Snapshot:
        """Count the requests that still wait, and return all counts; `read` is not called again."""
        while self._connections:
            self._forget(next(iter(self._connections)))
        # A client with a software name has sent ApiVersions, even if that was before the log began.
        clients = self._observations.snapshot().clients
        return Snapshot(
            tuple(replace(seen, negotiates=seen.negotiates or bool(seen.software_name)) for seen in clients)
        )

    def _count(self, request: LoggedRequest) -> None:
        connection = self._connection(request)
        is_brokers = self._is_of_brokers(request)
        if connection.is_brokers is None and (is_brokers or _shows_sender(request)):
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
            connection = self._connections[key] = _Connection()
        else:
            self._connections.move_to_end(key)
        if software[0]:
            connection.info.software_name, connection.info.software_version = software
        return connection

    def _is_of_brokers(self, request: LoggedRequest) -> bool:
        """Return whether a broker or a controller sent the request."""
        key = request.api_key
        if key in CONTROLLER_APIS and len(self._controller_listeners) < LISTENERS_MAX:
            self._controller_listeners.add(request.listener)
        return (
            request.is_forwarded
            or key in CONTROLLER_APIS
            or self._newest.is_internal(key)
            or request.replica_id > NO_REPLICA
            or (key == ADD_PARTITIONS_TO_TXN and request.api_version >= BROKERS_ADD_PARTITIONS)
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


def _shows_sender(request: LoggedRequest) -> bool:
    """Return whether a request that is not of brokers is of a client; else brokers and clients send it alike."""
    if request.api_key == OFFSET_FOR_LEADER_EPOCH:
        return request.api_version >= NAMES_REPLICA
    return request.api_key != API_VERSIONS
