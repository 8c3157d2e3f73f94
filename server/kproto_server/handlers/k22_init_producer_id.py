"""InitProducerId (API key 22): return a producer id and epoch to a producer (BA-100, BA-104)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k22_init_producer_id import InitProducerIdResponse
from kproto_server.handlers._transactions import coordinator_error, known_error
from kproto_server.transactions.transitions import ProducerIdAndEpoch

if TYPE_CHECKING:
    from kproto.messages.k22_init_producer_id import InitProducerIdRequest
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext

UNKNOWN = -1
FIRST_EPOCH = 0
FENCED_SINCE = 4
"""The first version that may return PRODUCER_FENCED."""


def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse | DeferredResponse:
    transactional_id = request.transactional_id
    if transactional_id == "" or (request.producer_id == UNKNOWN) is not (request.producer_epoch == UNKNOWN):
        return _refused(ErrorCode.INVALID_REQUEST)
    if transactional_id is None:
        return _response(context.cluster.new_producer_id(), FIRST_EPOCH)
    timeout_ms = request.transaction_timeout_ms
    if not 0 < timeout_ms <= context.settings.current.int("transaction.max.timeout.ms"):
        return _refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    error = coordinator_error(transactional_id, context)
    if error:
        return _refused(error)
    expected = None
    if request.producer_id != UNKNOWN:
        expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    outcome = context.transactions.init_producer(transactional_id, timeout_ms, expected, context.now_ms)

    def respond() -> InitProducerIdResponse:
        if outcome.error or outcome.values is None:
            return _refused(known_error(outcome.error, FENCED_SINCE, context))
        return _response(outcome.values.producer_id, outcome.values.epoch)

    return context.coordinator.log.then(respond)


def _response(producer_id: int, epoch: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=producer_id, producer_epoch=epoch)


def _refused(error: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(throttle_time_ms=0, error_code=error, producer_id=UNKNOWN, producer_epoch=UNKNOWN)
