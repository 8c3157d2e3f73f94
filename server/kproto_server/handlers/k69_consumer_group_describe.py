"""ConsumerGroupDescribe (API key 69): groups of KIP-848, which exist only in loaded logs; others get an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k69_consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from kproto_server.coordinator.description import not_found

if TYPE_CHECKING:
    from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
    from kproto_server.coordinator.groups import Group
    from kproto_server.requests.context import RequestContext


def handle(request: ConsumerGroupDescribeRequest, context: RequestContext) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        throttle_time_ms=0, groups=tuple([_describe(group_id, context) for group_id in request.group_ids])
    )


def _describe(group_id: str, context: RequestContext) -> DescribedGroup:
    if not context.coordinator.behavior.is_new_coordinator:
        return _refused(group_id, ErrorCode.UNSUPPORTED_VERSION)
    error = context.coordinator.error_at(context.node, group_id)
    if error:
        return _refused(group_id, error)
    group = context.coordinator.group(group_id)
    if group is None:
        return _refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, not_found(group_id))
    if group.kind == "classic":
        return _refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return _consumer(group)


def _consumer(group: Group) -> DescribedGroup:
    """Return a group that was loaded from the log of a real broker, as far as `loading.restored_groups` keeps it."""
    topics = tuple(sorted(group.subscribed_topics or ()))
    nothing = Assignment(topic_partitions=())
    return DescribedGroup(
        error_code=0,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.generation,
        assignment_epoch=group.generation,
        assignor_name="",
        members=tuple(
            Member(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                member_epoch=member.epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=topics,
                assignment=nothing,
                target_assignment=nothing,
                member_type=0 if member.speaks_classic else 1,
            )
            for member in group.members.values()
        ),
    )


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
