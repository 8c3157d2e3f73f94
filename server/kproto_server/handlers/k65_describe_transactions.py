"""DescribeTransactions (API key 65): the state of transactional ids (KIP-664)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k65_describe_transactions import DescribeTransactionsResponse, TopicData, TransactionState
from kproto_server.deferred import LargeResponse, lazily, noting_errors, sum_exceeds
from kproto_server.handlers._transactions import coordinator_error
from kproto_server.transactions.transaction import STATE_NAMES

if TYPE_CHECKING:
    from kproto.messages.k65_describe_transactions import DescribeTransactionsRequest
    from kproto_server.requests.context import RequestContext


SMALL_PARTITIONS = 5000
"""Partitions of transactions that are described at once: about 5 ms. A response with more is made in slices."""


def handle(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse | LargeResponse:
    ids = request.transactional_ids
    if not sum_exceeds(SMALL_PARTITIONS, (_partition_count(one, context) for one in ids)):
        return _response(tuple(_state(one, context) for one in ids))
    error_codes: list[int] = []
    state = noting_errors(partial(_state, context=context), error_codes)
    return LargeResponse(_response(lazily(state, ids)), error_codes)


def _response(states: tuple[TransactionState, ...]) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(throttle_time_ms=0, transaction_states=states)


def _partition_count(transactional_id: str, context: RequestContext) -> int:
    if coordinator_error(transactional_id, context):
        return 0
    transaction = context.transactions.get(transactional_id)
    return 0 if transaction is None else len(transaction.values.partitions)


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
