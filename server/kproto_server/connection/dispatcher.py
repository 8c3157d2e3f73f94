"""What all connections of a broker share: its state, its endpoints, its cached commits, and what was observed."""

from __future__ import annotations

import logging
from dataclasses import replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Protocol

from kproto import registry
from kproto.errors import UnsupportedVersion
from kproto.messages import APIS
from kproto_server import handlers
from kproto_server.commit_cache.cache import learns
from kproto_server.commit_cache.cached_commits import CachedCommits
from kproto_server.deferred import CloseConnection
from kproto_server.observation.error_codes import reader_of
from kproto_server.observation.observe import shortened
from kproto_server.requests.endpoint import RECORDS_IN_RESPONSES, Endpoint, elements_max, turn_size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.message import Response
    from kproto_server.deferred import Turn
    from kproto_server.observation.observe import Observations
    from kproto_server.requests.context import RequestContext
    from kproto_server.state import BrokerState


logger = logging.getLogger("kproto")

LATE_MS = 25.0
"""After so much of an iteration of the event loop, all requests but repeated commits wait for a turn. A thousand
members that join at once take 15 to 30 ms; with 15 ms here, a tenth of their requests wait, which costs 5 %."""
COSTLY_MS = 5.0
"""A connection whose request took longer waits for a turn also in time."""
RANK_AHEAD = 1000
"""How many later operations have their turn before one whose rank is higher by one."""
WARNINGS_MAX = 1000
"""Warnings of APIs that do nothing: clients choose the names of their software."""
ENDPOINTS_MAX = 4096
"""Endpoints that are kept: more than the versions of all APIs. ApiVersions has a response to each of 32,768 versions.
"""


class Runnable(Protocol):
    """A connection, as the event loop sees it."""

    on_runnable: Callable[[], object] | None


class Endpoints(dict[tuple[int, int], Endpoint]):
    """Endpoints by API key and version, made when first needed: importing a handler takes longer than handling a
    request."""

    def __missing__(self, key: tuple[int, int]) -> Endpoint:
        made = self._made(key)
        if len(self) < ENDPOINTS_MAX:
            self[key] = made
        return made

    def _made(self, key: tuple[int, int]) -> Endpoint:
        raise NotImplementedError


class _Endpoints(Endpoints):
    """The endpoints of a dispatcher by itself."""

    def __init__(self, make: Callable[[int, int], Endpoint]) -> None:
        super().__init__()
        self._make = make

    def _made(self, key: tuple[int, int]) -> Endpoint:
        return self._make(*key)


class Dispatcher:
    """Finds the endpoint of a request, and knows the connections that have something to do."""

    def __init__(
        self, state: BrokerState, observations: Observations, *, caches_commits: bool = True, takes_turns: bool = False
    ) -> None:
        """``caches_commits``: False: every commit takes the reference path; the responses are the same (D13).
        ``takes_turns``: costly requests wait for turns, which the owner of the dispatcher gives them; None waits
        otherwise.
        """
        self.state = state
        self.observations = observations
        # The cache puts offsets into the bytes of an earlier record batch, which must not be compressed.
        is_plain = not state.settings.current.int("offsets.topic.compression.codec")
        self.cached_commits: CachedCommits | None = (
            CachedCommits(state.coordinator, state.cluster) if caches_commits and is_plain else None
        )
        self.runnable: dict[Runnable, None] = {}
        """Connections with responses to send, or whose delayed operation is complete; see `take_runnable`."""
        self._takes_turns = takes_turns
        self.turns: list[tuple[int, int, Turn]] = []
        """Operations that wait for their turn, as a heap: priority, number, operation."""
        self._turns_queued = 0
        self.monotonic_s: Callable[[], float] = float
        """Returns monotonic real time; set by the owner of the event loop. 0.0: no request takes any time."""
        self.is_late: bool = False
        """Whether requests have taken `LATE_MS` of this iteration of the event loop."""
        self.has_free_turn: bool = True
        """Whether no costly request was handled yet in this iteration of the event loop."""
        self.frame_size_max_bytes: int = state.settings.current.int("socket.request.max.bytes")
        self.sync_sharing_keys: tuple[bytes, ...] = handlers.SYNC_SHARING_KEYS
        """How requests begin that may be handled before earlier ones are synced."""
        self._warned: set[tuple[int, str]] = set()
        """API key and client software of each warning of an API that does nothing."""
        self.endpoints: dict[tuple[int, int], Endpoint] = _Endpoints(self._make_endpoint)
        """The endpoint of an API key and version.

        Raises:
            CloseConnection: the Kafka version does not serve this version of the API (BA-6).
        """

    def take_runnable(self) -> list[Runnable]:
        """Return the runnable connections, each once, the first one first; they are not runnable any more."""
        connections = list(self.runnable)
        self.runnable.clear()
        return connections

    def begin_iteration(self) -> None:
        """Note that an iteration of the event loop begins."""
        self.has_free_turn = True
        self.is_late = False

    def take_free_turn(self) -> bool:
        """Return whether a costly request may be handled at once: the first one in this iteration, while none waits.

        To wait for a turn that no other request takes would cost 50 us, half of what Produce of 100 KB costs.
        """
        if not self._takes_turns:
            return True
        if self.turns or not self.has_free_turn:
            return False
        self.has_free_turn = False
        return True

    def queue(self, turn: Turn) -> None:
        """Have an operation wait for its turn: behind earlier ones, and behind `RANK_AHEAD` later ones for each rank
        that these are below its own. So a client whose requests were cheap does not wait for costly ones."""
        if not self._takes_turns:
            turn.complete()
        else:
            self._turns_queued += 1
            heappush(self.turns, (self._turns_queued + turn.rank * RANK_AHEAD, self._turns_queued, turn))

    @property
    def next_turn_rank(self) -> int:
        """The rank of the operation whose turn is next."""
        return self.turns[0][2].rank

    def give_turn(self) -> None:
        """Complete the operation whose turn is next."""
        heappop(self.turns)[2].complete()

    def note_time(self, ended_s: float) -> None:
        """Note if the iteration is late now, after work that has ended."""
        if ended_s * 1000.0 - self.state.clock.real_ms > LATE_MS:
            self.is_late = True
            self.has_free_turn = False

    def was_costly(self, began_s: float, ended_s: float) -> bool:
        """Return whether a request was costly; note if the iteration is late now."""
        self.note_time(ended_s)
        return (ended_s - began_s) * 1000.0 > COSTLY_MS

    def shares_sync(self, frame: bytes) -> bool:
        """Whether a request only appends to the log, so that it may be handled before an earlier one is synced."""
        return frame.startswith(self.sync_sharing_keys)

    def _make_endpoint(self, api_key: int, api_version: int) -> Endpoint:
        kafka_version = self.state.kafka_version
        if api_key not in kafka_version.served:
            raise CloseConnection(f"API key {api_key} is not served by Kafka version {kafka_version.name}")
        own = handlers.own_endpoint(api_key, api_version, kafka_version, self.observations)
        if own is not None:
            return own
        if not kafka_version.serves(api_key, api_version):
            return self._make_unchecked(api_key, api_version)
        try:
            codec = registry.codec(api_key, api_version)
        except UnsupportedVersion as error:
            raise CloseConnection(str(error)) from None
        return Endpoint(
            api_version=api_version,
            decode=codec.decode_request,
            elements_max=elements_max(api_key),
            is_learned=learns(api_key, api_version),
            handle=handlers.handler(api_key) if api_key in handlers.HANDLED else self._unsupported(api_key),
            encode=codec.encode_response,
            response_header_version=codec.response_header_version,
            error_codes=reader_of(registry.response_class(api_key)),
            encode_slices=codec.encode_response_slices,
            has_records=api_key in RECORDS_IN_RESPONSES,
            turn_size_bytes=turn_size_bytes(api_key),
            fail=lambda request, error: handlers.failure(request, api_version, error),
        )

    def _unsupported(self, api_key: int) -> Callable[[Any, RequestContext], Response]:
        """Return the handler of an API that does nothing; it says so once for each client software."""
        handle = handlers.handler(api_key)

        def warn_and_handle(request: Any, context: RequestContext) -> Response:
            info = context.connection
            software = f"{info.software_name} {info.software_version}".strip()
            client = api_key, software or shortened(context.client_id)
            if client not in self._warned and len(self._warned) < WARNINGS_MAX:
                self._warned.add(client)
                sender = f"client id {context.client_id!r}" + (f", {software!r}" if software else "")
                logger.warning("%s does nothing here; sent by %s", APIS[api_key], sender)
            response: Response = handle(request, context)
            return response

        return warn_and_handle

    def _make_unchecked(self, api_key: int, api_version: int) -> Endpoint:
        """Kafka 0.8 reads a version that it does not know as the newest one it knows."""
        kafka_version = self.state.kafka_version
        newest = kafka_version.served[api_key][1]
        if kafka_version.closes_on_newer_versions or api_version < newest:
            raise CloseConnection(f"version {api_version} is not served by Kafka version {kafka_version.name}")
        endpoint = self.endpoints[api_key, newest]

        def decode(frame: bytes, _: int, elements_max: int) -> tuple[Any, ...]:
            return endpoint.decode(frame, _end_of_header_v1(frame), elements_max)

        return replace(endpoint, decode=decode)


def _end_of_header_v1(frame: bytes) -> int:
    """Return where a body begins for a broker that does not know tagged fields (BA-3)."""
    return 10 + max(0, int.from_bytes(frame[8:10], "big", signed=True))
