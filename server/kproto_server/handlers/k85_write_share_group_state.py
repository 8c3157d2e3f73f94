"""WriteShareGroupState (API key 85): the leader of a share partition stores its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k85_write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from kproto_server.cluster.topics import Refusal
from kproto_server.handlers._share_states import StateResult, handle_states, outcomes
from kproto_server.share_groups.in_flight import StateBatch
from kproto_server.share_groups.share_states import SharePartitionKey, StateWrite

if TYPE_CHECKING:
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext

ACTION = "write share group state"
BATCHES_MAX = 10_000
"""Batches of states that a request combines, stored ones and new ones: about 100 ms. A share partition has at most as
many records in flight. DEVIATION: a real broker has no limit."""
TOO_MANY = Refusal(ErrorCode.INVALID_REQUEST, f"kproto combines at most {BATCHES_MAX} state batches in a request")
RECORDS_MAX = 20_000
"""Records of the batches of a state, stored ones and new ones: each may need a state of its own, 30 ms and 4 MiB
together. A share partition has at most half as many in flight. DEVIATION: a real broker has no limit."""
TOO_LARGE = Refusal(ErrorCode.INVALID_REQUEST, f"kproto has state batches of at most {RECORDS_MAX} records")


def handle(
    request: WriteShareGroupStateRequest, context: RequestContext
) -> WriteShareGroupStateResponse | DeferredResponse:
    store, left = context.share_groups.store, BATCHES_MAX

    def refusal(key: SharePartitionKey, part: PartitionData) -> Refusal | None:
        nonlocal left
        write, stored = _write(part), store.batches(key)
        left -= len(write.batches) + len(stored)
        if left < 0:
            return TOO_MANY
        record_count = sum(max(0, b.last_offset - b.first_offset + 1) for b in (*stored, *write.batches))
        return TOO_LARGE if record_count > RECORDS_MAX else store.write_refusal(key, write)

    def write(key: SharePartitionKey, part: PartitionData, result: StateResult) -> None:
        store.write(key, _write(part), context.now_ms, result.settle)

    handled = handle_states(request.group_id, request.topics, context, ACTION, refusal, write)

    def respond() -> WriteShareGroupStateResponse:
        return WriteShareGroupStateResponse(results=outcomes(handled, WriteStateResult, PartitionResult))

    return context.coordinator.log.then(respond)


def _write(part: PartitionData) -> StateWrite:
    batches = tuple(
        StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in part.state_batches
    )
    return StateWrite(part.state_epoch, part.leader_epoch, part.start_offset, part.delivery_complete_count, batches)
