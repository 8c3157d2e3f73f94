"""RenewDelegationToken (API key 39): a token is valid for longer (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k39_renew_delegation_token import RenewDelegationTokenResponse
from kproto_server.handlers._delegation_tokens import (
    NO_TIME,
    DelegationTokenBehavior,
    allows_token_requests,
    client_of,
    set_end,
    unavailable,
)

if TYPE_CHECKING:
    from kproto.messages.k39_renew_delegation_token import RenewDelegationTokenRequest
    from kproto_server.requests.context import RequestContext


def handle(request: RenewDelegationTokenRequest, context: RequestContext) -> RenewDelegationTokenResponse:
    if not allows_token_requests(context):
        return _response(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NO_TIME)
    behavior, tokens = context.behavior(DelegationTokenBehavior), context.cluster.delegation_tokens
    reason = unavailable(context)
    if tokens is None or reason:
        return _response(reason or ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, behavior.no_time)
    token = tokens.by_hmac(request.hmac)
    if token is None:
        return _response(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, behavior.no_time)
    is_expired = token.is_expired(context.now_ms)
    if is_expired and context.kafka_version.is_kraft:
        return _response(ErrorCode.DELEGATION_TOKEN_EXPIRED, behavior.no_time)
    if not token.may_renew(client_of(context)):
        return _response(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, behavior.no_time)
    if is_expired:
        return _response(ErrorCode.DELEGATION_TOKEN_EXPIRED, behavior.no_time)
    default_ms = context.settings.of(context.node.node_id).int("delegation.token.expiry.time.ms")
    period_ms = behavior.renewal_ms(request.renew_period_ms, default_ms)
    return _response(ErrorCode.NONE, set_end(token, behavior.later(context.now_ms, period_ms), context))


def _response(error: ErrorCode, expires_ms: int) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=expires_ms, throttle_time_ms=0)
