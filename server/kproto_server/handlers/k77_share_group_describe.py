"""ShareGroupDescribe (API key 77): the members of share groups, and what is assigned to them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k77_share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from kproto_server.deferred import lazily
from kproto_server.handlers._described_groups import empty_ids_first, find, refused, respond
from kproto_server.handlers._operations import AuthorizedOperationsBehavior

if TYPE_CHECKING:
    from kproto.messages.k77_share_group_describe import ShareGroupDescribeRequest
    from kproto_server.deferred import LargeResponse
    from kproto_server.requests.context import RequestContext
    from kproto_server.share_groups.data import ShareMember
    from kproto_server.share_groups.group import ShareGroup

NO_GROUP = partial(DescribedGroup, assignor_name="")
ASSIGNOR = "simple"


def handle(request: ShareGroupDescribeRequest, context: RequestContext) -> LargeResponse:
    group_ids = empty_ids_first(request.group_ids, context)
    return respond(ShareGroupDescribeResponse, lambda group_id: _describe(group_id, request, context), group_ids)


def _describe(group_id: str, request: ShareGroupDescribeRequest, context: RequestContext) -> DescribedGroup:
    if not context.share_groups.is_enabled:
        return refused(NO_GROUP, group_id, ErrorCode.UNSUPPORTED_VERSION)
    group = find(NO_GROUP, group_id, "share", context)
    if isinstance(group, DescribedGroup):
        return group
    from kproto_server.share_groups.group import ShareGroup

    assert isinstance(group, ShareGroup), "of this kind"
    described = _described(group, context)
    if request.include_authorized_operations:
        return described.replace(authorized_operations=context.behavior(AuthorizedOperationsBehavior).on_group)
    return described


def _described(group: ShareGroup, context: RequestContext) -> DescribedGroup:
    data = group.data
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=data.epoch,
        assignment_epoch=data.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=lazily(lambda member: _member(member, context), list(data.members.values())),
    )


def _member(member: ShareMember, context: RequestContext) -> Member:
    topics = []
    for topic_id, partitions in member.assigned.items():
        topic = context.cluster.topic_by_id(topic_id)
        if topic is not None:
            topics.append(TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=partitions))
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        assignment=Assignment(topic_partitions=tuple(topics)),
    )
