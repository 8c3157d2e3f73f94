"""What all connections of a broker share: its state, what was observed of them, and how each API is served.

Theory of operation. What a frame means is looked up by (API key, version) in `Endpoint`s, made at first use: whether
the Kafka version serves it, how to decode and encode it, who handles it. `Session` is what goes by that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kproto import registry
from kproto.errors import UnsupportedVersion
from kproto_server import handlers
from kproto_server.commit_cache.cache import Memos
from kproto_server.requests.context import RequestContext
from kproto_server.requests.deferred import CloseConnection, DeferredResponse, DelayedOperation, NoResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.message import Response
    from kproto_server.observation.observe import Observations
    from kproto_server.requests.connection import Session
    from kproto_server.state import BrokerState

OFFSET_COMMIT = 8


class Endpoint(NamedTuple):
    """How one API is served in one version."""

    api_version: int
    """The version asked for; in 0.8, which checks none, one that it knows."""
    decode: Callable[[bytes, int], tuple[Any, int]]
    encode: Callable[[Any], bytes]
    handle: Callable[[Any, RequestContext], Response | DelayedOperation | DeferredResponse | NoResponse]
    response_header_version: int


class Dispatcher:
    """What all sessions share: the state, what was observed, and the endpoints."""

    def __init__(self, state: BrokerState, observations: Observations, *, remembers: bool = True) -> None:
        """``remembers``: answer repeated commits from memory; the same answers come without (D13)."""
        self.state = state
        # What a memo writes is a template with the offsets put in: it can't be compressed.
        is_plain = not state.settings.current.int("offsets.topic.compression.codec")
        self.memos = Memos(state.coordinator, state.cluster) if remembers and is_plain else None
        self.observations = observations
        self.uncounted: dict[Session, None] = {}
        """Sessions with requests that are not reported yet."""
        observations.before_read = self._count
        self.released: dict[Session, None] = {}
        """Sessions that have something to send or to do, for whoever runs the loop to `take_released`."""
        self.frame_size_max_bytes = state.settings.current.int("socket.request.max.bytes")
        self._endpoints: dict[tuple[int, int], Endpoint] = {}

    def _count(self) -> None:
        """Have everything reported that was not yet."""
        for session in self.uncounted:
            session.count()

    def take_released(self) -> list[Session]:
        """Return the sessions whose answers have come to be, in that order."""
        sessions = list(self.released)
        self.released.clear()
        return sessions

    def endpoint(self, api_key: int, api_version: int) -> Endpoint:
        """Return how to serve an API in a version.

        Raises:
            CloseConnection: the Kafka version does not serve it (BA-6).
        """
        found = self._endpoints.get((api_key, api_version))
        if found is None:
            found = self._endpoints[api_key, api_version] = self._make_endpoint(api_key, api_version)
        return found

    def _make_endpoint(self, api_key: int, api_version: int) -> Endpoint:
        kafka_version = self.state.kafka_version
        if api_key not in kafka_version.api_versions:
            raise CloseConnection(f"API key {api_key} is not served by Kafka version {kafka_version.name}")
        if not kafka_version.serves(api_key, api_version):
            return self._make_unchecked(api_key, api_version)
        try:
            codec = registry.codec(api_key, api_version)
        except UnsupportedVersion as error:
            raise CloseConnection(str(error)) from None
        return Endpoint(
            api_version=api_version,
            decode=codec.decode_request,
            encode=codec.encode_response,
            handle=handlers.handler(api_key),
            response_header_version=codec.response_header_version,
        )

    def _make_unchecked(self, api_key: int, api_version: int) -> Endpoint:
        """0.8 reads a version that it does not know by the newest layout that it does, OffsetCommit apart."""
        kafka_version = self.state.kafka_version
        newest = kafka_version.api_versions[api_key][1]
        if kafka_version.closes_on_newer_versions or api_key == OFFSET_COMMIT or api_version < newest:
            raise CloseConnection(f"version {api_version} is not served by Kafka version {kafka_version.name}")
        endpoint = self.endpoint(api_key, newest)
        return endpoint._replace(decode=lambda frame, _: endpoint.decode(frame, _end_of_header_v1(frame)))


def _end_of_header_v1(frame: bytes) -> int:
    """Where a body begins for a broker that knows no tags (BA-3)."""
    return 10 + max(0, int.from_bytes(frame[8:10], "big", signed=True))
