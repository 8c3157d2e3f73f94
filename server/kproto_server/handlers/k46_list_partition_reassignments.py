"""ListPartitionReassignments (API key 46): an empty list, since partitions never move between nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kproto_server.handlers._controller import not_controller

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext


def handle(request: ListPartitionReassignmentsRequest, context: RequestContext) -> ListPartitionReassignmentsResponse:
    if not_controller(context):
        error = ErrorCode.NOT_CONTROLLER
        return ListPartitionReassignmentsResponse(
            throttle_time_ms=0, error_code=error, error_message=error.message, topics=()
        )
    message = None if context.kafka_version.is_kraft else ""
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=message, topics=()
    )
