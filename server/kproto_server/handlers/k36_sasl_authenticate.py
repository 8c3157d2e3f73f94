"""SaslAuthenticate (API key 36): one step of a SASL mechanism (BA-112 to BA-116)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k36_sasl_authenticate import SaslAuthenticateResponse
from kproto_server.deferred import CloseConnection
from kproto_server.handlers._sasl import SaslBehavior, failing, note_session
from kproto_server.security.sasl import AuthenticationFailed, MalformedToken

if TYPE_CHECKING:
    from kproto.messages.k36_sasl_authenticate import SaslAuthenticateRequest
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext


def handle(request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse | DelayedOperation:
    authentication = context.connection.authentication
    if authentication is None or authentication.is_complete:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
            auth_bytes=b"",
        )
    try:
        token = authentication.step(request.auth_bytes, context.now_ms)
    except AuthenticationFailed as failure:
        refused = SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(failure), auth_bytes=b""
        )
        return failing(refused, str(failure), context)
    except MalformedToken as malformed:
        raise CloseConnection(str(malformed)) from None
    lifetime_ms = note_session(authentication, context) if authentication.is_complete else 0
    return SaslAuthenticateResponse(
        error_code=ErrorCode.NONE,
        error_message=context.behavior(SaslBehavior).message_without_error,
        auth_bytes=token,
        session_lifetime_ms=lifetime_ms,
    )
