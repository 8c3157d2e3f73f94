"""Count the clients' requests in captures of network traffic, as the proxy counts them.

What brokers send each other is left out: a connection is a broker's if its first request other than ApiVersions shows
it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kproto import registry
from kproto.errors import ProtocolError
from kproto.runtime import FAILURES
from kproto_server.audit.senders import NAMES_REPLICA, NO_REPLICA, OFFSET_FOR_LEADER_EPOCH, is_of_broker, shows_sender
from kproto_server.capture.kafka_connections import KafkaConnections
from kproto_server.capture.segments import shown_host
from kproto_server.proxy.cutting import ELEMENTS_MAX, PENDING_MAX
from kproto_server.proxy.exchanges import Exchanges
from kproto_server.requests.context import ConnectionInfo

if TYPE_CHECKING:
    from kproto.headers import ReceivedHeader
    from kproto_server.capture.segments import Endpoint
    from kproto_server.observation.observe import Observations

FETCH, LIST_OFFSETS = 1, 2
TAGGED_REPLICA = 15
"""From this version on the id of a follower is a tagged field of Fetch."""


class Captured:
    """The requests of one or more captures, which its `connections` read."""

    def __init__(self, observations: Observations) -> None:
        self.observations: Observations = observations
        self.served: dict[int, tuple[int, int]] = {}
        """The API versions of the cluster, as its responses show them; empty: no response did."""
        self.request_count: int = 0
        """Requests of clients."""
        self.broker_request_count: int = 0
        """Requests that brokers and controllers sent."""
        self.connections: KafkaConnections = KafkaConnections(lambda client, broker: _Conversation(self, client))


class _Conversation(Exchanges):
    """The requests and responses of a connection."""

    def __init__(self, captured: Captured, client: Endpoint) -> None:
        super().__init__(captured.observations, ConnectionInfo(f"/{shown_host(client)}"), captured.served, None)
        self.pending = deque(maxlen=PENDING_MAX)
        self._captured = captured
        self._is_brokers: bool | None = None
        """None: no request has shown it."""
        self._count = 0

    def requested(self, header: ReceivedHeader, frame: bytes) -> None:
        self._count += 1
        key, version = header.api_key, header.api_version
        if self._is_brokers is None:
            replica_id = _replica_id(header, frame)
            is_brokers = is_of_broker(key, version, NO_REPLICA if replica_id is None else replica_id)
            if is_brokers or (replica_id is not None and shows_sender(key, version)):
                self._is_brokers = is_brokers

    def offered(self, served: dict[int, tuple[int, int]]) -> None:
        if not self._is_brokers:
            self._captured.served.update(served)

    def pending_ids(self) -> list[int | None]:
        return [request.correlation_id for request in self.pending]

    def end(self, *, is_by_broker: bool) -> None:
        """Count the connection; what brokers sent is left out."""
        if self._is_brokers:
            self.observations.forget(self.info)
            self._captured.broker_request_count += self._count
            return
        if is_by_broker:
            self.broker_closed()
        self.observations.disconnected(self.info)
        self._captured.request_count += self._count


def _replica_id(header: ReceivedHeader, frame: bytes) -> int | None:
    """Return the id of the follower that sent a request; `NO_REPLICA` if none did; None if that cannot be read: the
    first Fetch of a follower may be larger than what is kept of a request."""
    key, version, position = header.api_key, header.api_version, header.body_position
    if key == FETCH and version >= TAGGED_REPLICA:
        try:
            request, _ = registry.codec(key, version).decode_request(frame, position, ELEMENTS_MAX)
        except (ProtocolError, *FAILURES):
            return None
        replica_id: int = request.replica_state.replica_id
        return replica_id
    if key in (FETCH, LIST_OFFSETS) or (key == OFFSET_FOR_LEADER_EPOCH and version >= NAMES_REPLICA):
        return int.from_bytes(frame[position : position + 4], "big", signed=True)
    return NO_REPLICA
