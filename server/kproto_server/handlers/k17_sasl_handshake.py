"""SaslHandshake (API key 17): choose the mechanism of the authentication that follows (BA-110, BA-111)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k17_sasl_handshake import SaslHandshakeResponse
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
    if authentication is None or (authentication.is_complete and authentication.session_ends_ms is None):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=())
    mechanisms = enabled_mechanisms(context)
    if request.mechanism not in mechanisms or request.mechanism not in MECHANISMS:
        authentication.refuse(request.mechanism)
        refused = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms)
        return closing_later(refused, f"SASL mechanism {request.mechanism!r} is not enabled", context)
    authentication.choose(request.mechanism, raw=context.api_version < AUTHENTICATE_SINCE)
    return SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=mechanisms)
