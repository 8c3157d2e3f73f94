"""ExpireDelegationToken (API key 40): a token ends at another time, or at once (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k40_expire_delegation_token import ExpireDelegationTokenResponse
from kproto_server.handlers._delegation_tokens import (
    NO_TIME,
    DelegationTokenBehavior,
    allows_token_requests,
    client_of,
    set_end,
    unavailable,
)

if TYPE_CHECKING:
    from kproto.messages.k40_expire_delegation_token import ExpireDelegationTokenRequest
    from kproto_server.requests.context import RequestContext


def handle(request: ExpireDelegationTokenRequest, context: RequestContext) -> ExpireDelegationTokenResponse:
    if not allows_token_requests(context):
        return _response(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NO_TIME)
    behavior, tokens = context.behavior(DelegationTokenBehavior), context.cluster.delegation_tokens
    reason = unavailable(context)
    if tokens is None or reason:
        return _response(reason or ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, behavior.no_time)
    token = tokens.by_hmac(request.hmac)
    if token is None:
        return _response(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, behavior.no_time)
    if not token.may_renew(client_of(context)):
        return _response(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, behavior.no_time)
    is_expired = token.is_expired(context.now_ms)
    if is_expired and not behavior.removes_expired_tokens:
        return _response(ErrorCode.DELEGATION_TOKEN_EXPIRED, behavior.no_time)
    if request.expiry_time_period_ms < 0:
        context.cluster.change_delegation_tokens(one for one in tokens.tokens if one is not token)
        return _response(ErrorCode.NONE, context.now_ms)
    if is_expired:
        return _response(ErrorCode.DELEGATION_TOKEN_EXPIRED, behavior.no_time)
    expires_ms = behavior.later(context.now_ms, request.expiry_time_period_ms)
    return _response(ErrorCode.NONE, set_end(token, expires_ms, context))


def _response(error: ErrorCode, expires_ms: int) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=expires_ms, throttle_time_ms=0)
