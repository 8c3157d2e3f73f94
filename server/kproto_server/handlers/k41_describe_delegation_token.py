"""DescribeDelegationToken (API key 41): the tokens of some owners, or all that the client may see (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import BUCKETS_MIN, in_hash_order
from kproto.messages.k41_describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from kproto_server.handlers._delegation_tokens import NO_REQUESTER, WITH_REQUESTER, allows_token_requests
from kproto_server.security.delegation_tokens import Principal

if TYPE_CHECKING:
    from kproto.messages.k41_describe_delegation_token import DescribeDelegationTokenRequest
    from kproto_server.requests.context import RequestContext
    from kproto_server.security.delegation_tokens import DelegationTokens, Token


def handle(request: DescribeDelegationTokenRequest, context: RequestContext) -> DescribeDelegationTokenResponse:
    """Return all tokens that match; with an authorizer, `authorization` leaves out those that the client may not
    see."""
    if not allows_token_requests(context):
        return _refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    tokens = context.cluster.delegation_tokens
    if tokens is None:
        return _refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = [Principal(owner.principal_type, owner.principal_name) for owner in request.owners]
    known = {token.token_id: token for token in tokens.tokens}
    in_order = (known[token_id] for token_id in in_hash_order(known, java_hash, _capacity(len(known))))
    return DescribeDelegationTokenResponse(
        error_code=ErrorCode.NONE,
        tokens=tuple(
            _described(token, tokens, context.api_version)
            for token in in_order
            if owners is None or any(map(token.is_of, owners))
        ),
        throttle_time_ms=0,
    )


def _capacity(count: int) -> int:
    """Return the capacity of a Java ConcurrentHashMap, which grows one element earlier than a HashMap."""
    capacity = BUCKETS_MIN
    while count >= capacity * 3 // 4:
        capacity *= 2
    return capacity


def _refused(error: ErrorCode) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=error, tokens=(), throttle_time_ms=0)


def _described(token: Token, tokens: DelegationTokens, api_version: int) -> DescribedDelegationToken:
    requester = token.requester if api_version >= WITH_REQUESTER else NO_REQUESTER
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=tokens.hmac_of(token.token_id),
        renewers=tuple(
            DescribedDelegationTokenRenewer(principal_type=one.type, principal_name=one.name) for one in token.renewers
        ),
    )
