"""From a frame to its answer: one plain function on the way of every request (D12).

Theory of operation. A `Session` is one connection without its socket: `receive` takes what was read, answers every
complete frame that can be answered now, and returns all answers as one piece of bytes. A request that has to wait
parks the session: nothing behind it is looked at until its answer is out (BA-8), so the shell stops reading.

What a frame means is looked up by (API key, version) in `Endpoint`s, made at first use: whether the profile serves it,
how to decode and encode it, who handles it. Everything else here is the exception: versions that the profile does not
serve (BA-6, BA-21), OffsetCommit v4's two layouts (D1), bytes that make no sense (BA-6).
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto import registry
from kproto.errors import DecodeError, FrameTooLarge, UnsupportedVersion
from kproto.framing import FrameReader
from kproto.headers import read_request_header, response_frame
from kproto_server import handlers
from kproto_server.call import Call, CloseConnection, ConnectionInfo, Wait
from kproto_server.memo import Memos

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.declaration import Response
    from kproto_server.cluster.cluster import Node
    from kproto_server.memo import CommitMemo
    from kproto_server.observation.observe import Observations
    from kproto_server.state import BrokerState

logger = logging.getLogger("kproto")

API_VERSIONS = 18
OFFSET_COMMIT = 8

DEFECT = "API key %d version %d from %r"
CLOSED_BY_DEFECT = "the broker failed on this request; its log says how"

ANSWERS_SIZE_MAX_BYTES = 1 << 20
"""Answers that are made before what they answer to has to take them. A read holds thousands of small requests, and each
may ask for all there is: their answers together have no bound."""


class Endpoint(NamedTuple):
    """How one API is served in one version."""

    api_version: int
    """The version asked for; in 0.8, which checks none, one that it knows."""
    decode: Callable[[bytes, int], tuple[Any, int]]
    encode: Callable[[Any], bytes]
    handle: Callable[[Any, Call], Response | Wait]
    response_header_version: int


class Parked(NamedTuple):
    """A request that waits, and what its answer needs."""

    wait: Wait
    call: Call
    correlation_id: int
    endpoint: Endpoint


class Dispatcher:
    """What all sessions share: the state, what was observed, and the endpoints."""

    def __init__(self, state: BrokerState, observations: Observations, *, remembers: bool = True) -> None:
        """``remembers``: answer repeated commits from memory; the same answers come without (D13)."""
        self.state = state
        self.memos = Memos(state) if remembers else None
        self.observations = observations
        self.frame_size_max_bytes = state.settings.int("socket.request.max.bytes")
        self._endpoints: dict[tuple[int, int], Endpoint] = {}

    def endpoint(self, api_key: int, api_version: int) -> Endpoint:
        """Return how to serve an API in a version.

        Raises:
            CloseConnection: the profile does not serve it (BA-6).
        """
        found = self._endpoints.get((api_key, api_version))
        if found is None:
            found = self._endpoints[api_key, api_version] = self._make_endpoint(api_key, api_version)
        return found

    def _make_endpoint(self, api_key: int, api_version: int) -> Endpoint:
        profile = self.state.profile
        if api_key not in profile.api_versions:
            raise CloseConnection(f"API key {api_key} is not served by profile {profile.name}")
        if not profile.serves(api_key, api_version):
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
        profile = self.state.profile
        newest = profile.api_versions[api_key][1]
        if profile.checks_versions or api_key == OFFSET_COMMIT or api_version < newest:
            raise CloseConnection(f"version {api_version} is not served by profile {profile.name}")
        endpoint = self.endpoint(api_key, newest)
        return endpoint._replace(decode=lambda frame, _: endpoint.decode(frame, _end_of_header_v1(frame)))


def _end_of_header_v1(frame: bytes) -> int:
    """Where a body begins for a broker that knows no tags (BA-3)."""
    return 10 + max(0, int.from_bytes(frame[8:10], "big", signed=True))


class Session:
    """One connection without its socket."""

    __slots__ = ("_client_id", "_reader", "_refused", "backlog", "closed", "dispatcher", "info", "node", "parked")

    def __init__(self, dispatcher: Dispatcher, node: Node, info: ConnectionInfo) -> None:
        self.dispatcher = dispatcher
        self.node = node
        self.info = info
        self.parked: Parked | None = None
        self.closed: str | None = None
        """Why the connection must be closed once everything returned so far is sent; None: it stays."""
        self._reader = FrameReader(dispatcher.frame_size_max_bytes)
        self._refused: str | None = None
        self.backlog: deque[bytes] = deque()
        """Frames that have to wait: for a parked request, or for the client to take the answers before (`proceed`)."""
        self._client_id = ""
        """Of the last request: what is said of a frame that has none."""

    def receive(self, data: bytes, now_ms: int) -> bytes:
        """Take what was read; return the answers that can be given now, in request order."""
        self._reader.feed(data)
        try:
            self.backlog.extend(self._reader.frames())
        except FrameTooLarge as error:
            self._refused = str(error)  # what came before it is answered first
        return self.proceed(now_ms)

    def resume(self, now_ms: int) -> bytes:
        """Answer the parked request, and what came behind it."""
        parked, self.parked = self.parked, None
        assert parked is not None, "nothing is parked"
        call = parked.call
        try:
            first = self._respond(parked.endpoint, call, parked.correlation_id, parked.wait.answer())
        except Exception:  # a defect of ours ends this connection, never the others (BA-13)
            logger.exception(DEFECT, call.api_key, call.api_version, self._client_id)
            self._close(CLOSED_BY_DEFECT, call.api_key, call.api_version)
            return b""
        return first + self.proceed(now_ms)

    def proceed(self, now_ms: int) -> bytes:
        """Answer of the backlog what can be answered now; the caller sends that before it comes again."""
        backlog = self.backlog
        memos, state = self.dispatcher.memos, self.dispatcher.state
        answers = []
        size = hits = 0
        hit: CommitMemo | None = None
        try:
            while backlog and self.parked is None and self.closed is None and size < ANSWERS_SIZE_MAX_BYTES:
                frame = backlog.popleft()
                memo = None if memos is None else memos.find(frame, self.node)
                if memo is None:
                    answer = self._answer(frame, now_ms)
                else:
                    answer = memo.answer(frame, now_ms, state)
                    if memo is not hit:
                        self._count(hit, hits)
                        hit, hits = memo, 0
                    hits += 1
                size += len(answer)
                answers.append(answer)
        except Exception:  # the plain path looks after itself: this is a defect of the memory (BA-13)
            logger.exception(DEFECT, OFFSET_COMMIT, -1, self._client_id)
            self._close(CLOSED_BY_DEFECT, OFFSET_COMMIT, -1)
        self._count(hit, hits)
        if self._refused is not None and not backlog and self.parked is None and self.closed is None:
            self._close(self._refused, -1, -1)
        return answers[0] if len(answers) == 1 else b"".join(answers)

    def _count(self, memo: CommitMemo | None, hits: int) -> None:
        """Report requests answered from memory, as the plain path reports each."""
        if memo is None:
            return
        observations = self.dispatcher.observations
        observations.request(self.info, memo.client_id, OFFSET_COMMIT, memo.api_version, hits)
        if memo.api_version <= 4:
            retention_ms = memo.request.retention_time_ms
            observations.commit_layout(self.info, memo.client_id, memo.api_version, memo.layout, retention_ms, hits)

    def _answer(self, frame: bytes, now_ms: int) -> bytes:
        """Answer one frame; empty if it waits or was the last."""
        api_key = api_version = -1
        dispatcher = self.dispatcher
        try:
            api_key, api_version, correlation_id, client_id, position = read_request_header(frame)
            self._client_id = client_id = client_id or ""  # null counts as empty (BA-4)
            if api_key == API_VERSIONS and self._is_downgraded(api_version):
                return self._unsupported_api_versions(client_id, api_version, correlation_id)
            endpoint = dispatcher.endpoint(api_key, api_version)
            call = Call(dispatcher.state, self.node, self.info, api_key, endpoint.api_version, client_id, now_ms)
            dispatcher.observations.request(self.info, client_id, api_key, api_version)
            if api_key == OFFSET_COMMIT and 2 <= api_version <= 4:
                request = self._decode_offset_commit(endpoint, api_version, frame, position)
            else:
                request, _ = endpoint.decode(frame, position)  # bytes after the body are ignored (BA-7)
            response = endpoint.handle(request, call)
            if isinstance(response, Wait):
                self.parked = Parked(response, call, correlation_id, endpoint)
                return b""
            answer = self._respond(endpoint, call, correlation_id, response)
            if api_key == OFFSET_COMMIT and dispatcher.memos is not None:
                dispatcher.memos.learn(frame, position, call, request, response, answer)  # type: ignore[arg-type]
            return answer
        except (DecodeError, CloseConnection) as error:
            self._close(str(error), api_key, api_version)
            return b""
        except Exception:  # a defect of ours ends this connection, never the others (BA-13)
            logger.exception(DEFECT, api_key, api_version, self._client_id)
            self._close(CLOSED_BY_DEFECT, api_key, api_version)
            return b""

    def _respond(self, endpoint: Endpoint, call: Call, correlation_id: int, response: Response) -> bytes:
        self.dispatcher.observations.response(self.info, call.client_id, call.api_key, call.api_version, response)
        return response_frame(correlation_id, endpoint.response_header_version, endpoint.encode(response))

    def _is_downgraded(self, api_version: int) -> bool:
        profile = self.dispatcher.state.profile
        return profile.has_api_versions and not profile.serves(API_VERSIONS, api_version)

    def _unsupported_api_versions(self, client_id: str, api_version: int, correlation_id: int) -> bytes:
        """The one API that answers a version it does not know: in v0's layout, with what it does know (BA-21)."""
        from kproto_server.handlers.k18_api_versions import unsupported_version_response

        self.dispatcher.observations.request(self.info, client_id, API_VERSIONS, api_version)
        profile = self.dispatcher.state.profile
        body = registry.codec(API_VERSIONS, 0).encode_response(unsupported_version_response(profile))
        return response_frame(correlation_id, 0, body)

    def _decode_offset_commit(self, endpoint: Endpoint, api_version: int, frame: bytes, position: int) -> Any:
        """OffsetCommit v2-v4 carry a retention override, and v4 comes in two layouts (D1, D2): note both."""
        layout: str
        if api_version == 4:
            from kproto.offset_commit_v4 import decode_v4

            request, _, layout = decode_v4(frame, position)
        else:
            request, _ = endpoint.decode(frame, position)
            layout = f"v{api_version}"
        observations = self.dispatcher.observations
        observations.commit_layout(self.info, self._client_id, api_version, layout, request.retention_time_ms)
        return request

    def _close(self, reason: str, api_key: int, api_version: int) -> None:
        self.closed = reason
        self.dispatcher.observations.closed(self.info, self._client_id, api_key, api_version, reason)
        logger.info("%s %r: closed: %s", self.info.client_host, self._client_id, reason)
