"""What the handlers of transactional requests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext


def known_error(error: int, first_version: int, context: RequestContext) -> int:
    """Return an error as a client knows it: PRODUCER_FENCED is INVALID_PRODUCER_EPOCH before a version (OC-58)."""
    if error == ErrorCode.PRODUCER_FENCED and context.api_version < first_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def coordinator_error(transactional_id: str, context: RequestContext) -> ErrorCode:
    """Return why this node cannot serve a transactional id; NONE if it can."""
    if not transactional_id:
        return ErrorCode.INVALID_REQUEST
    return context.transactions.log.error_at(context.node, transactional_id)
