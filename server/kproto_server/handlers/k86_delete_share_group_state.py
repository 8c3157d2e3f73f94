"""DeleteShareGroupState (API key 86): the coordinator of a share group deletes the states of share partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k86_delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)
from kproto_server.handlers._share_states import StateResult, handle_states, outcomes

if TYPE_CHECKING:
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext
    from kproto_server.share_groups.share_states import SharePartitionKey

ACTION = "delete share group state"


def handle(
    request: DeleteShareGroupStateRequest, context: RequestContext
) -> DeleteShareGroupStateResponse | DeferredResponse:
    def delete(key: SharePartitionKey, part: PartitionData, result: StateResult) -> None:
        context.share_groups.store.delete(key, context.now_ms, result.settle)

    handled = handle_states(request.group_id, request.topics, context, ACTION, lambda key, part: None, delete)

    def respond() -> DeleteShareGroupStateResponse:
        return DeleteShareGroupStateResponse(results=outcomes(handled, DeleteStateResult, PartitionResult))

    return context.coordinator.log.then(respond)
