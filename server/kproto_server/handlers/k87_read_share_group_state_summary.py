"""ReadShareGroupStateSummary (API key 87): the coordinator of a share group reads how far share partitions are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k87_read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from kproto_server.handlers._share_states import Handled, StateResult, handle_states, results
from kproto_server.share_groups.share_states import SharePartitionKey, ShareState

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext

ACTION = "read share group state summary"


def handle(request: ReadShareGroupStateSummaryRequest, context: RequestContext) -> ReadShareGroupStateSummaryResponse:
    states: dict[SharePartitionKey, ShareState] = {}

    def read(key: SharePartitionKey, part: PartitionData, result: StateResult) -> None:
        states[key] = context.share_groups.store.states.get(key, ShareState())

    def result_of(one: Handled) -> PartitionResult:
        state = states.get(SharePartitionKey(request.group_id, one.topic_id, one.partition), ShareState(0))
        return PartitionResult(
            partition=one.partition,
            error_code=one.result.error,
            error_message=one.result.message,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.done_count,
        )

    handled = handle_states(request.group_id, request.topics, context, ACTION, lambda key, part: None, read)
    return ReadShareGroupStateSummaryResponse(results=results(handled, ReadStateSummaryResult, result_of))
