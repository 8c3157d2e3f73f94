"""What the APIs of delegation tokens have in common: which clients may use them, and the times in responses
(KIP-48)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import INT64_SIGN, wrapped
from kproto_server.cluster.features import METADATA_VERSION
from kproto_server.releases.release import VersionBehavior
from kproto_server.requests.context import ANONYMOUS
from kproto_server.security.delegation_tokens import Principal

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext
    from kproto_server.security.delegation_tokens import Token

NO_TIME = -1
"""The times of a response with an error that the node itself has found."""

TOKENS_LEVEL = 14
"""The first level of `metadata.version` with delegation tokens: 3.6-IV2 (`MetadataVersion`)."""
WITH_REQUESTER = 3
"""The first version of CreateDelegationToken and DescribeDelegationToken that has the creators of tokens."""
NO_REQUESTER = Principal("", "")


class DelegationTokenBehavior(VersionBehavior):
    """What Kafka releases do differently with delegation tokens (measured on 2.1.1 to 4.4.0, BA-117)."""

    @cached_property
    def no_time(self) -> int:
        """The times of a response with an error that the controller of KRaft, or a node of ZooKeeper, has found."""
        return 0 if self.is_kraft else NO_TIME

    def renewal_ms(self, period_ms: int, default_ms: int) -> int:
        """Return for how long a token is renewed. ``default_ms``: `delegation.token.expiry.time.ms`, which is the
        longest renewal in KRaft, and also stands for 0 there."""
        if self.is_kraft:
            return min(period_ms, default_ms) if period_ms > 0 else default_ms
        return default_ms if period_ms < 0 else period_ms

    @cached_property
    def removes_expired_tokens(self) -> bool:
        """Whether owners and renewers can remove a token that has ended (measured on 3.0.2 and 3.5.2)."""
        return self.at_least(3, 5)

    def later(self, now_ms: int, period_ms: int) -> int:
        """Return a time in the future: beyond 64 bits it is negative, or the last one."""
        later_ms = now_ms + period_ms
        return min(later_ms, INT64_SIGN - 1) if self.is_kraft and self.at_least(4, 0) else wrapped(later_ms)


def allows_token_requests(context: RequestContext) -> bool:
    """Return whether the client is authenticated, and not by a delegation token."""
    connection = context.connection
    if connection.authentication is not None:
        return not connection.authentication.is_by_token
    return connection.principal != ANONYMOUS


def unavailable(context: RequestContext) -> ErrorCode | None:
    """Return why the cluster makes and changes no tokens; None: it does."""
    if context.cluster.delegation_tokens is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    is_old = context.kafka_version.is_kraft and context.cluster.features.level(METADATA_VERSION) < TOKENS_LEVEL
    return ErrorCode.UNSUPPORTED_VERSION if is_old else None


def token_to_change(hmac: bytes, context: RequestContext) -> Token | tuple[ErrorCode, int]:
    """Return the token of a request that changes one, or its error and the time in the response with the error."""
    if not allows_token_requests(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NO_TIME
    no_time, tokens = context.behavior(DelegationTokenBehavior).no_time, context.cluster.delegation_tokens
    reason = unavailable(context)
    if tokens is None or reason:
        return reason or ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, no_time
    return tokens.by_hmac(hmac) or (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, no_time)


def client_of(context: RequestContext) -> Principal:
    """Return the principal of the client."""
    return Principal.parse(context.connection.principal)


def set_end(token: Token, expires_ms: int, context: RequestContext) -> int:
    """Change when a token ends, which is never after its maximum; return the time."""
    changed = token._replace(expires_ms=min(token.max_ms, expires_ms))
    _put(changed, token, context)
    return changed.expires_ms


def remove(token: Token, context: RequestContext) -> None:
    """Remove a token at once."""
    _put(None, token, context)


def _put(new: Token | None, old: Token, context: RequestContext) -> None:
    tokens = context.cluster.delegation_tokens
    assert tokens is not None, "it has the token"
    changed = (new if one is old else one for one in tokens.tokens)
    context.cluster.change_delegation_tokens(one for one in changed if one is not None)
