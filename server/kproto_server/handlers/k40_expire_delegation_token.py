"""ExpireDelegationToken (API key 40): a token ends at another time, or at once (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k40_expire_delegation_token import ExpireDelegationTokenResponse
from kproto_server.handlers._delegation_tokens import (
    DelegationTokenBehavior,
    client_of,
    remove,
    set_end,
    token_to_change,
)
from kproto_server.security.delegation_tokens import Token

if TYPE_CHECKING:
    from kproto.messages.k40_expire_delegation_token import ExpireDelegationTokenRequest
    from kproto_server.requests.context import RequestContext


def handle(request: ExpireDelegationTokenRequest, context: RequestContext) -> ExpireDelegationTokenResponse:
    token = token_to_change(request.hmac, context)
    if not isinstance(token, Token):
        return _response(*token)
    behavior = context.behavior(DelegationTokenBehavior)
    if not token.may_renew(client_of(context)):
        return _response(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, behavior.no_time)
    is_expired = token.is_expired(context.now_ms)
    if is_expired and not behavior.removes_expired_tokens:
        return _response(ErrorCode.DELEGATION_TOKEN_EXPIRED, behavior.no_time)
    if request.expiry_time_period_ms < 0:
        remove(token, context)
        return _response(ErrorCode.NONE, context.now_ms)
    if is_expired:
        return _response(ErrorCode.DELEGATION_TOKEN_EXPIRED, behavior.no_time)
    expires_ms = behavior.later(context.now_ms, request.expiry_time_period_ms)
    return _response(ErrorCode.NONE, set_end(token, expires_ms, context))


def _response(error: ErrorCode, expires_ms: int) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=expires_ms, throttle_time_ms=0)
