"""InitializeShareGroupState (API key 83): the coordinator of a share group creates the states of share partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k83_initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)
from kproto_server.handlers._share_states import StateResult, handle_states, outcomes

if TYPE_CHECKING:
    from kproto_server.cluster.topics import Refusal
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext
    from kproto_server.share_groups.share_states import SharePartitionKey

ACTION = "initialize share group state"


def handle(
    request: InitializeShareGroupStateRequest, context: RequestContext
) -> InitializeShareGroupStateResponse | DeferredResponse:
    store, now_ms = context.share_groups.store, context.now_ms

    def refusal(key: SharePartitionKey, part: PartitionData) -> Refusal | None:
        return store.initialize_refusal(key, part.state_epoch)

    def initialize(key: SharePartitionKey, part: PartitionData, result: StateResult) -> None:
        store.initialize(key, part.state_epoch, part.start_offset, now_ms, result.settle)

    handled = handle_states(
        request.group_id, request.topics, context, ACTION, refusal, initialize, needs_partitions=False
    )

    def respond() -> InitializeShareGroupStateResponse:
        return InitializeShareGroupStateResponse(results=outcomes(handled, InitializeStateResult, PartitionResult))

    return context.coordinator.log.then(respond)
