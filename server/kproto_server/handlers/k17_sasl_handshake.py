"""SaslHandshake (API key 17): choose the mechanism of the authentication that follows (BA-110, BA-111)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k17_sasl_handshake import SaslHandshakeResponse
from kproto_server.deferred import CloseConnection
from kproto_server.handlers._sasl import closing_later, enabled_mechanisms
from kproto_server.security.sasl import MECHANISMS

if TYPE_CHECKING:
    from kproto.messages.k17_sasl_handshake import SaslHandshakeRequest
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext

AUTHENTICATE_SINCE = 1
"""The version after which tokens come in SaslAuthenticate."""


def handle(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse | DelayedOperation:
    authentication = context.connection.authentication
    times_ms = context.now_ms, context.coordinator.clock.real_ms
    is_complete = authentication is not None and authentication.is_complete
    if authentication is None or (is_complete and not authentication.may_begin_again(*times_ms)):
        if authentication is not None and authentication.is_expired(context.now_ms):
            raise CloseConnection("the session has ended, and the client may not authenticate again yet")
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=())
    if is_complete:
        authentication.begin_again(*times_ms)
    mechanisms = enabled_mechanisms(context)
    if request.mechanism not in mechanisms or request.mechanism not in MECHANISMS:
        authentication.refuse(request.mechanism)
        reason = f"SASL mechanism {request.mechanism!r} is not enabled"
        if is_complete:
            raise CloseConnection(reason)
        refused = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms)
        return closing_later(refused, reason, context)
    authentication.choose(request.mechanism, raw=context.api_version < AUTHENTICATE_SINCE)
    return SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=mechanisms)
