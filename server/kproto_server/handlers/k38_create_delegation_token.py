"""CreateDelegationToken (API key 38): a client obtains a token, for itself or for another user (KIP-48, KIP-373)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k38_create_delegation_token import CreateDelegationTokenResponse
from kproto_server.handlers._delegation_tokens import (
    NO_REQUESTER,
    NO_TIME,
    WITH_REQUESTER,
    DelegationTokenBehavior,
    allows_token_requests,
    client_of,
    unavailable,
)
from kproto_server.requests.context import ANONYMOUS
from kproto_server.security.delegation_tokens import USER_TYPE, Principal, Token, size_of

if TYPE_CHECKING:
    from kproto.messages.k38_create_delegation_token import CreateDelegationTokenRequest
    from kproto_server.requests.context import RequestContext

TOKENS_MAX = 10_000
ANONYMOUS_CLIENT = Principal.parse(ANONYMOUS)
NAMES_MAX = 10_000
"""The size of a token's principals (`size_of`)."""
ALL_NAMES_MAX = 2_000_000
"""That of all tokens, which each change writes to the data directory."""


def handle(request: CreateDelegationTokenRequest, context: RequestContext) -> CreateDelegationTokenResponse:
    if request.owner_principal_name and request.owner_principal_type is None:
        return _response(ErrorCode.UNKNOWN_SERVER_ERROR, ANONYMOUS_CLIENT, context, (NO_TIME,) * 3, ANONYMOUS_CLIENT)
    if not allows_token_requests(context):
        return refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, request, context)
    if any(renewer.principal_type != USER_TYPE for renewer in request.renewers):
        return refused(ErrorCode.INVALID_PRINCIPAL_TYPE, request, context)
    behavior, tokens = context.behavior(DelegationTokenBehavior), context.cluster.delegation_tokens
    reason = unavailable(context)
    if tokens is None or reason:
        return refused(reason or ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, request, context, behavior.no_time)
    owner, requester = owner_of(request, context), client_of(context)
    renewers = tuple(Principal(one.principal_type, one.principal_name) for one in request.renewers)
    size = size_of(owner, requester, renewers)
    if len(tokens.tokens) >= TOKENS_MAX or size > min(NAMES_MAX, ALL_NAMES_MAX - tokens.size):
        return refused(ErrorCode.POLICY_VIOLATION, request, context, behavior.no_time)
    settings, now_ms = context.settings.of(context.node.node_id), context.now_ms
    lifetime_ms = settings.int("delegation.token.max.lifetime.ms")
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_ms = behavior.later(now_ms, lifetime_ms)
    expires_ms = min(max_ms, behavior.later(now_ms, settings.int("delegation.token.expiry.time.ms")))
    token = Token(tokens.new_id(), owner, requester, renewers, now_ms, expires_ms, max_ms)
    context.cluster.change_delegation_tokens((*tokens.tokens, token))
    return _response(ErrorCode.NONE, owner, context, (now_ms, expires_ms, max_ms)).replace(
        token_id=token.token_id, hmac=tokens.hmac_of(token.token_id)
    )


def owner_of(request: CreateDelegationTokenRequest, context: RequestContext) -> Principal:
    """Return the owner of the token: the client, unless the request names another one."""
    if not request.owner_principal_name:
        return client_of(context)
    return Principal(request.owner_principal_type or "", request.owner_principal_name)


def refused(
    error: ErrorCode, request: CreateDelegationTokenRequest, context: RequestContext, time_ms: int = NO_TIME
) -> CreateDelegationTokenResponse:
    """Return the response with an error. ``time_ms``: in place of all times."""
    return _response(error, owner_of(request, context), context, (time_ms,) * 3)


def _response(
    error: ErrorCode,
    owner: Principal,
    context: RequestContext,
    times_ms: tuple[int, ...],
    requester: Principal | None = None,
) -> CreateDelegationTokenResponse:
    """Return the response without a token. ``times_ms``: issue, expiry and maximum; ``requester``: None: the client."""
    requester = requester or client_of(context)
    if context.api_version < WITH_REQUESTER:
        requester = NO_REQUESTER
    issued_ms, expires_ms, max_ms = times_ms
    return CreateDelegationTokenResponse(
        error_code=error,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=issued_ms,
        expiry_timestamp_ms=expires_ms,
        max_timestamp_ms=max_ms,
        token_id="",
        hmac=b"",
        throttle_time_ms=0,
    )
