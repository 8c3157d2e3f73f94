"""A connection whose client has to authenticate first (SASL).

The rest of the broker does not know of it: until the client is authenticated, `Authenticating` lets only the requests
of SASL and ApiVersions through to their handlers; these keep what they learn in `ConnectionInfo.authentication`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.headers import read_request_header, response_frame
from kproto_server.connection.connection import CLOSED_BY_DEFECT, REFUSED, Connection
from kproto_server.connection.logged_connection import LoggedConnection
from kproto_server.deferred import NO_RESPONSE, DelayedOperation, Piece
from kproto_server.observation.observe import NO_API
from kproto_server.security.sasl import Authentication, AuthenticationFailed, MalformedToken, Phase

if TYPE_CHECKING:
    from kproto_server.cluster.cluster import Node
    from kproto_server.connection.deferred_queue import PendingResponse
    from kproto_server.connection.dispatcher import Dispatcher
    from kproto_server.observation.request_log import RequestLog
    from kproto_server.requests.context import ConnectionInfo

logger = logging.getLogger("kproto")

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
FRAME_SIZE_MAX_BYTES = 524288
"""The greatest frame before a client is authenticated: `sasl.server.max.receive.size` (BA-2)."""
ALLOWED: dict[Phase, tuple[int, ...]] = {
    Phase.BEGUN: (SASL_HANDSHAKE, API_VERSIONS),
    Phase.NEGOTIATED: (SASL_HANDSHAKE,),
    Phase.CHOSEN: (SASL_AUTHENTICATE,),
}
"""The API keys of requests that a phase allows."""


def _no_cached_commit(frame: bytes, now_ms: int) -> None:
    """The cached commits of other connections serve no client that is not authenticated."""


class Authenticating(Connection):
    """What both kinds of connections have in common."""

    __slots__ = ()

    def require(self, authentication: Authentication) -> None:
        """Accept only what leads to authentication from now on; called before the first read."""
        self.info.authentication = authentication
        self._look_up = _no_cached_commit
        self._reader.limit = min(self._reader.limit, FRAME_SIZE_MAX_BYTES)

    def _handle(self, frame: bytes, now_ms: int) -> bytes | PendingResponse:
        authentication = self.info.authentication
        assert authentication is not None, "set by `require`"
        phase = authentication.phase
        if authentication.is_complete:
            if authentication.is_expired(now_ms) and _api_key(frame) != SASL_HANDSHAKE:
                self._fail("the session has ended, and the client has not authenticated again", NO_API, NO_API)
                return b""
            return super()._handle(frame, now_ms)
        if phase is Phase.CHOSEN_RAW or _api_key(frame) not in ALLOWED[phase]:
            try:
                return self._take_token(frame, now_ms) if phase is Phase.CHOSEN_RAW else self._refuse(frame, phase)
            except Exception:
                logger.exception("SASL authentication of %r", self._client_id)
                self._fail(CLOSED_BY_DEFECT, NO_API, NO_API)
                return b""
            finally:
                self._count_failure(authentication)
        response = super()._handle(frame, now_ms)
        if authentication.is_complete:
            self._begin()
        self._count_failure(authentication)
        return response

    def resume(self, now_ms: int) -> bytes:
        authentication = self.info.authentication
        if authentication is None or authentication.close_reason is None:
            return super().resume(now_ms)
        # The delayed operation is that of a token without a header, which is no request with an endpoint.
        self._take_delayed()
        return self._send_piece(Piece(b"", close_reason=authentication.close_reason), None)

    def _count_failure(self, authentication: Authentication) -> None:
        if authentication.has_failed:
            authentication.has_failed = False
            mechanism, user = authentication.mechanism or "", authentication.claimed_user or ""
            self.dispatcher.observations.failed_authentication(self.info, self._client_id, mechanism, user)

    def _begin(self) -> None:
        """Serve the client as any other."""
        self._reader.limit = self.dispatcher.frame_size_max_bytes
        authentication = self.info.authentication
        assert authentication is not None, "set by `require`"
        self.info.principal = f"User:{authentication.user}"
        if authentication.session_ends_ms is None:
            self._use_commit_cache()

    def _refuse(self, frame: bytes, phase: Phase) -> bytes:
        """Close the connection; between SaslHandshake and SaslAuthenticate behind a response with an error (BA-111)."""
        api_key = api_version = NO_API
        response = b""
        try:
            api_key, api_version, correlation_id, _, body_position = read_request_header(frame)
            if phase is Phase.CHOSEN:
                from kproto_server.handlers._error_responses import refused

                endpoint = self.dispatcher.endpoints[api_key, api_version]
                request = endpoint.decode(frame, body_position, endpoint.elements_max)[0]
                body = endpoint.encode(refused(request, api_key, endpoint.api_version, ErrorCode.ILLEGAL_SASL_STATE))
                response = response_frame(correlation_id, endpoint.response_header_version, body)
            reason = f"API key {api_key} before SASL authentication"
        except REFUSED as error:
            reason = str(error)
        self._fail(reason, api_key, api_version)
        return response

    def _take_token(self, frame: bytes, now_ms: int) -> bytes:
        """Take a token without a header; return the broker's, which has only its size."""
        authentication = self.info.authentication
        assert authentication is not None, "set by `require`"
        try:
            token = authentication.step(frame, now_ms)
        except AuthenticationFailed as failure:
            settings = self.dispatcher.state.settings.of(self.node.node_id)
            deadline_ms = now_ms + settings.int("connection.failed.authentication.delay.ms")
            authentication.close_reason = str(failure)
            self._delay(DelayedOperation(deadline_ms, lambda: NO_RESPONSE), None)
            return b""
        except MalformedToken as malformed:
            self._fail(str(malformed), NO_API, NO_API)
            return b""
        if authentication.is_complete:
            state, listener = self.dispatcher.state, self.info.listener
            settings = state.settings.of(self.node.node_id)
            lifetime_ms = settings.str_of_listener(listener or state.cluster.main_listener, "connections.max.reauth.ms")
            authentication.begin_session(now_ms, int(lifetime_ms))
            self._begin()
        return len(token).to_bytes(4, "big") + token


def _api_key(frame: bytes) -> int:
    return int.from_bytes(frame[:2], "big", signed=True)


class AuthenticatingConnection(Authenticating):
    """A connection whose client has to authenticate."""

    __slots__ = ()


class LoggedAuthenticatingConnection(Authenticating, LoggedConnection):
    """The same, with its requests in the request log, but for those that authenticate: they have secrets."""

    __slots__ = ()

    def receive(self, data: bytes, now_ms: int) -> bytes:
        authentication = self.info.authentication
        if authentication is not None and authentication.is_complete:
            return super().receive(data, now_ms)
        self._is_logged = False
        return Connection.receive(self, data, now_ms)


def connect(
    dispatcher: Dispatcher, node: Node, info: ConnectionInfo, log: RequestLog | None, authentication: Authentication
) -> Connection:
    """Return a new connection. ``log``: gets its requests; None: none is logged."""
    connection: Authenticating
    if log is None:
        connection = AuthenticatingConnection(dispatcher, node, info)
    else:
        connection = LoggedAuthenticatingConnection(dispatcher, node, info, log)
    connection.require(authentication)
    return connection
