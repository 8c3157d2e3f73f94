"""ConsumerGroupDescribe (API key 69): groups of KIP-848, which nothing here makes yet; of any other it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeResponse, DescribedGroup
from kproto_server.coordinator.description import not_found
from kproto_server.coordinator.partitioning import coordinator_error

if TYPE_CHECKING:
    from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
    from kproto_server.call import Call


def handle(request: ConsumerGroupDescribeRequest, call: Call) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        throttle_time_ms=0, groups=tuple([_describe(group_id, call) for group_id in request.group_ids])
    )


def _describe(group_id: str, call: Call) -> DescribedGroup:
    if not call.state.profile.new_group_coordinator:
        return _refused(group_id, ErrorCode.UNSUPPORTED_VERSION)
    error = coordinator_error(call.state, call.node, group_id)
    if error:
        return _refused(group_id, error)
    group = call.state.group(group_id)
    if group is None:
        return _refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, not_found(group_id))
    assert group.kind == "classic", "no request makes a consumer group"
    return _refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def _refused(group_id: str, error: int, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )
