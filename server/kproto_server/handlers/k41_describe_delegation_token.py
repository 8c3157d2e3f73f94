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
from kproto_server.deferred import LargeResponse, array_of, sum_exceeds
from kproto_server.handlers._delegation_tokens import NO_REQUESTER, WITH_REQUESTER, allows_token_requests
from kproto_server.security.delegation_tokens import Principal

if TYPE_CHECKING:
    from kproto.messages.k41_describe_delegation_token import DescribeDelegationTokenRequest
    from kproto_server.requests.context import RequestContext
    from kproto_server.security.delegation_tokens import DelegationTokens, Token


SMALL_TOKENS = 1000
"""Tokens and renewers that are described at once: about 10 ms. A response with more is made in slices."""


def handle(
    request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse | LargeResponse:
    """Return all tokens that match; with an authorizer, `authorization` leaves out those that the client may not
    see."""
    if not allows_token_requests(context):
        return _refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    tokens = context.cluster.delegation_tokens
    if tokens is None:
        return _refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    known = tokens.tokens
    found = {token.token_id: token for token in known}
    if request.owners is not None:
        owners = {Principal(owner.principal_type, owner.principal_name) for owner in request.owners}
        found = {token.token_id: token for token in known if token.is_of_any(owners)}
    in_order = [found[token_id] for token_id in in_hash_order(found, java_hash, _capacity(len(known)))]
    is_large = sum_exceeds(SMALL_TOKENS, (1 + len(token.renewers) for token in in_order))
    response = DescribeDelegationTokenResponse(
        error_code=ErrorCode.NONE,
        tokens=array_of(lambda token: _described(token, tokens, context.api_version), in_order, is_large=is_large),
        throttle_time_ms=0,
    )
    return LargeResponse(response) if is_large else response


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
