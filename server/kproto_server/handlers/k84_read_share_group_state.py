"""ReadShareGroupState (API key 84): the leader of a share partition reads its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k84_read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)
from kproto_server.handlers._share_states import Handled, StateResult, handle_states, results
from kproto_server.share_groups.share_states import SharePartitionKey, ShareState

if TYPE_CHECKING:
    from kproto_server.cluster.topics import Refusal
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext

ACTION = "read share group state"


def handle(
    request: ReadShareGroupStateRequest, context: RequestContext
) -> ReadShareGroupStateResponse | DeferredResponse:
    store = context.share_groups.store
    states: dict[SharePartitionKey, ShareState] = {}

    def refusal(key: SharePartitionKey, part: PartitionData) -> Refusal | None:
        return store.read_refusal(key, part.leader_epoch)

    def read(key: SharePartitionKey, part: PartitionData, result: StateResult) -> None:
        states[key] = store.read(key, part.leader_epoch, context.now_ms, result.settle)

    handled = handle_states(request.group_id, request.topics, context, ACTION, refusal, read)

    def result_of(one: Handled) -> PartitionResult:
        key = SharePartitionKey(request.group_id, one.topic_id, one.partition)
        state = ShareState(0) if one.result.error else states[key]
        return PartitionResult(
            partition=one.partition,
            error_code=one.result.error,
            error_message=one.result.message,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=tuple(StateBatch(**batch._asdict()) for batch in state.batches),
        )

    def respond() -> ReadShareGroupStateResponse:
        return ReadShareGroupStateResponse(results=results(handled, ReadStateResult, result_of))

    return context.coordinator.log.then(respond)
