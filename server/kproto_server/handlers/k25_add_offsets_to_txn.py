"""AddOffsetsToTxn (API key 25): add the offsets of a group to a producer's transaction (BA-103)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnResponse
from kproto.records.partitioning import OFFSETS_TOPIC, partition_for
from kproto_server.handlers._transactions import coordinator_error, known_error
from kproto_server.transactions.transitions import ProducerIdAndEpoch

if TYPE_CHECKING:
    from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext

FENCED_SINCE = 2
"""The first version that may return PRODUCER_FENCED."""


def handle(request: AddOffsetsToTxnRequest, context: RequestContext) -> AddOffsetsToTxnResponse | DeferredResponse:
    error = coordinator_error(request.transactional_id, context)
    if error:
        return AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=error)
    topic = context.cluster.topic(OFFSETS_TOPIC)
    count = len(topic.partitions) if topic is not None else context.cluster.defaults.offsets_num_partitions
    outcome = context.transactions.add_partitions(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        [(OFFSETS_TOPIC, partition_for(request.group_id, count))],
        context.now_ms,
    )
    return context.coordinator.log.then(
        lambda: AddOffsetsToTxnResponse(
            throttle_time_ms=0, error_code=known_error(outcome.error, FENCED_SINCE, context)
        )
    )
