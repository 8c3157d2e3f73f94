"""ListTransactions (API key 66): the transactional ids that a node coordinates (KIP-664, KIP-994)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k66_list_transactions import ListTransactionsResponse, TransactionState
from kproto_server.transactions.transaction import STATE_NAMES

if TYPE_CHECKING:
    from kproto.messages.k66_list_transactions import ListTransactionsRequest
    from kproto_server.requests.context import RequestContext
    from kproto_server.transactions.transaction import TransactionValues

NAMES = frozenset(STATE_NAMES.values())


def handle(request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
    transactions = context.transactions
    if ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in transactions.log.unavailable.values():
        return _response(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    pattern = None
    if request.transactional_id_pattern:
        from kproto_server.coordinator.regular_expression import InvalidRegex, regex_of

        try:
            pattern = regex_of(request.transactional_id_pattern)
        except InvalidRegex:
            return _response(error=ErrorCode.INVALID_REGULAR_EXPRESSION)
    unknown = tuple(name for name in request.state_filters if name not in NAMES)
    found = []
    if not request.state_filters or len(unknown) < len(request.state_filters):
        for transaction in transactions.transactions.values():
            name = transaction.transactional_id
            if pattern is not None and not pattern.matches(name):
                continue
            if _is_wanted(transaction.values, request, context) and not transactions.log.error_at(context.node, name):
                state = STATE_NAMES[transaction.values.status]
                found.append(
                    TransactionState(
                        transactional_id=name, producer_id=transaction.values.producer_id, transaction_state=state
                    )
                )
    return _response(unknown, tuple(found))


def _is_wanted(values: TransactionValues, request: ListTransactionsRequest, context: RequestContext) -> bool:
    if request.state_filters and STATE_NAMES[values.status] not in request.state_filters:
        return False
    if request.producer_id_filters and values.producer_id not in request.producer_id_filters:
        return False
    return request.duration_filter < 0 or context.now_ms - values.start_ms > request.duration_filter


def _response(
    unknown: tuple[str, ...] = (), found: tuple[TransactionState, ...] = (), error: ErrorCode = ErrorCode.NONE
) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        throttle_time_ms=0, error_code=error, unknown_state_filters=unknown, transaction_states=found
    )
