"""ListTransactions (API key 66): the transactional ids that a node coordinates (KIP-664, KIP-994)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k66_list_transactions import ListTransactionsResponse, TransactionState
from kproto_server.deferred import SMALL_BYTES, LargeResponse, in_slices, sum_exceeds
from kproto_server.transactions.transaction import STATE_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kproto.messages.k66_list_transactions import ListTransactionsRequest
    from kproto_server.coordinator.regular_expression import Regex
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext
    from kproto_server.transactions.transaction import TransactionValues

NAMES = frozenset(STATE_NAMES.values())


SLICE_IDS = 2000
"""Transactional ids that are looked at, or returned, at once: about 10 ms."""
SLICE_CHARACTERS = 10_000
"""Characters of ids that are matched with a pattern at once: up to 15 ms."""


def handle(
    request: ListTransactionsRequest, context: RequestContext
) -> ListTransactionsResponse | LargeResponse | DelayedOperation:
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
    return in_slices(_slices(request, pattern, context), context.now_ms)


def _slices(
    request: ListTransactionsRequest, pattern: Regex | None, context: RequestContext
) -> Generator[None, None, ListTransactionsResponse | LargeResponse]:
    transactions = context.transactions
    unknown = tuple(name for name in request.state_filters if name not in NAMES)
    is_wanted = _filter(request, context)
    found: list[TransactionState] = []
    is_any_known = not request.state_filters or len(unknown) < len(request.state_filters)
    left = SLICE_IDS
    for transaction in list(transactions.transactions.values()) if is_any_known else ():
        name, values = transaction.transactional_id, transaction.values
        left -= 1 if pattern is None else 1 + len(name) * SLICE_IDS // SLICE_CHARACTERS
        if left < 0:
            left = SLICE_IDS
            yield
        if pattern is not None and not pattern.matches(name):
            continue
        if is_wanted(values) and not transactions.log.error_at(context.node, name):
            state = STATE_NAMES[values.status]
            found.append(
                TransactionState(transactional_id=name, producer_id=values.producer_id, transaction_state=state)
            )
    response = _response(unknown, tuple(found))
    is_large = len(found) > SLICE_IDS or sum_exceeds(SMALL_BYTES, (len(one.transactional_id) for one in found))
    return LargeResponse(response) if is_large else response


def _filter(request: ListTransactionsRequest, context: RequestContext) -> Callable[[TransactionValues], bool]:
    """Return whether values pass the filters of a request, each of which passes all if it is empty."""
    states, producer_ids = frozenset(request.state_filters), frozenset(request.producer_id_filters)
    duration_ms, now_ms = request.duration_filter, context.now_ms

    def is_wanted(values: TransactionValues) -> bool:
        if (states and STATE_NAMES[values.status] not in states) or (
            producer_ids and values.producer_id not in producer_ids
        ):
            return False
        return duration_ms < 0 or now_ms - values.start_ms > duration_ms

    return is_wanted


def _response(
    unknown: tuple[str, ...] = (), found: tuple[TransactionState, ...] = (), error: ErrorCode = ErrorCode.NONE
) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        throttle_time_ms=0, error_code=error, unknown_state_filters=unknown, transaction_states=found
    )
