"""Checks of the rights on delegation tokens, and on the users for whom clients create and describe them (KIP-373)."""

from __future__ import annotations

from typing import Any

from kproto.codes import ErrorCode
from kproto_server.authorization.checks import Asked, Perform, filtered
from kproto_server.handlers._delegation_tokens import allows_token_requests, client_of
from kproto_server.handlers.k38_create_delegation_token import owner_of, refused
from kproto_server.security.acls import Operation, ResourceType


def create(asked: Asked, perform: Perform) -> Any:
    """A token for another user needs CREATE_TOKENS on the user."""
    request, context = asked.request, asked.context
    owner = owner_of(request, context)
    if (
        not allows_token_requests(context)
        or owner == client_of(context)
        or asked.rights.may(Operation.CREATE_TOKENS, ResourceType.USER, str(owner))
    ):
        return perform(request)
    return refused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, request, context)


def describe(asked: Asked, perform: Perform) -> Any:
    """Tokens of others need DESCRIBE on the token, or DESCRIBE_TOKENS on its owner; without it they are not listed."""
    tokens, client = asked.context.cluster.delegation_tokens, client_of(asked.context)

    def is_visible(described: Any) -> bool:
        token = None if tokens is None else tokens.by_id(described.token_id)
        return token is not None and (
            token.is_of(client)
            or asked.rights.may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
            or asked.rights.may(Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
        )

    return filtered(perform(asked.request), "tokens", is_visible, asked.context.now_ms)
