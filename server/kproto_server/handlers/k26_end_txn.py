"""EndTxn (API key 26): commit or abort a producer's transaction (BA-101, BA-103)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k26_end_txn import EndTxnResponse
from kproto_server.handlers._transactions import coordinator_error, known_error
from kproto_server.transactions.transitions import EPOCH_FOR_EACH_TRANSACTION, ProducerIdAndEpoch

if TYPE_CHECKING:
    from kproto.messages.k26_end_txn import EndTxnRequest
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext

FENCED_SINCE = 2
"""The first version that may return PRODUCER_FENCED."""
NEW_EPOCH_SINCE = 5
"""The first version that returns the id and epoch of the next transaction (KIP-890)."""


def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse | DeferredResponse:
    error = coordinator_error(request.transactional_id, context)
    if error:
        return EndTxnResponse(throttle_time_ms=0, error_code=error)
    raises_epoch = context.api_version >= NEW_EPOCH_SINCE
    outcome = context.transactions.end(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        commits=request.committed,
        client_version=EPOCH_FOR_EACH_TRANSACTION if raises_epoch else 0,
        now_ms=context.now_ms,
    )

    def respond() -> EndTxnResponse:
        error = known_error(outcome.error, FENCED_SINCE, context)
        if error or outcome.values is None or not raises_epoch:
            return EndTxnResponse(throttle_time_ms=0, error_code=error)
        return EndTxnResponse(
            throttle_time_ms=0,
            error_code=0,
            producer_id=outcome.values.producer_id,
            producer_epoch=outcome.values.epoch,
        )

    return context.coordinator.log.then(respond)
