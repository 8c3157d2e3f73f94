"""InitProducerId (API key 22): return a producer id and epoch to an idempotent producer (BA-100).

DEVIATION: no transactions. A request with a transactional id gets UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k22_init_producer_id import InitProducerIdResponse

if TYPE_CHECKING:
    from kproto.messages.k22_init_producer_id import InitProducerIdRequest
    from kproto_server.requests.context import RequestContext

UNKNOWN = -1
FIRST_EPOCH = 0


def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    if request.transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    if (request.producer_id == UNKNOWN) is not (request.producer_epoch == UNKNOWN):
        return _refused(ErrorCode.INVALID_REQUEST)
    producer_id = context.cluster.new_producer_id()
    return InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=producer_id, producer_epoch=FIRST_EPOCH)


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(throttle_time_ms=0, error_code=error, producer_id=UNKNOWN, producer_epoch=UNKNOWN)
