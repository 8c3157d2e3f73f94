"""DescribeTransactions (API key 65): the state of transactional ids (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k65_describe_transactions import DescribeTransactionsResponse, TopicData, TransactionState
from kproto_server.handlers._transactions import coordinator_error
from kproto_server.transactions.transaction import STATE_NAMES

if TYPE_CHECKING:
    from kproto.messages.k65_describe_transactions import DescribeTransactionsRequest
    from kproto_server.requests.context import RequestContext


def handle(request: DescribeTransactionsRequest, context: RequestContext) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        throttle_time_ms=0, transaction_states=tuple(_state(one, context) for one in request.transactional_ids)
    )


def _state(transactional_id: str, context: RequestContext) -> TransactionState:
    error = coordinator_error(transactional_id, context)
    if error:
        return _refused(transactional_id, error)
    transaction = context.transactions.get(transactional_id)
    if transaction is None:
        return _refused(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    values = transaction.values
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(values.partitions):
        topics.setdefault(topic, []).append(index)
    return TransactionState(
        error_code=0,
        transactional_id=transactional_id,
        transaction_state=STATE_NAMES[values.status],
        transaction_timeout_ms=values.timeout_ms,
        transaction_start_time_ms=values.start_ms,
        producer_id=values.producer_id,
        producer_epoch=values.epoch,
        topics=tuple(TopicData(topic=topic, partitions=tuple(found)) for topic, found in topics.items()),
    )


def _refused(transactional_id: str, error: ErrorCode) -> TransactionState:
    return TransactionState(
        error_code=error,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
        topics=(),
    )
