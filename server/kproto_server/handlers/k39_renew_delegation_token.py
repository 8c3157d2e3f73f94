"""RenewDelegationToken (API key 39): a token is valid for longer (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k39_renew_delegation_token import RenewDelegationTokenResponse
from kproto_server.handlers._delegation_tokens import DelegationTokenBehavior, client_of, set_end, token_to_change
from kproto_server.security.delegation_tokens import Token

if TYPE_CHECKING:
    from kproto.messages.k39_renew_delegation_token import RenewDelegationTokenRequest
    from kproto_server.requests.context import RequestContext


def handle(request: RenewDelegationTokenRequest, context: RequestContext) -> RenewDelegationTokenResponse:
    token = token_to_change(request.hmac, context)
    if not isinstance(token, Token):
        return _response(*token)
    behavior = context.behavior(DelegationTokenBehavior)
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
