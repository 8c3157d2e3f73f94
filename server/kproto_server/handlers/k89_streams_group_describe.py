"""StreamsGroupDescribe (API key 89): the groups of KIP-1071 with their topologies, members and tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k89_streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeResponse,
    TaskIds,
    TaskOffset,
)
from kproto_server.cluster.features import STREAMS_VERSION
from kproto_server.deferred import lazily
from kproto_server.handlers._described_groups import empty_ids_first, find, refused, respond
from kproto_server.handlers._operations import AuthorizedOperationsBehavior

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.messages.k89_streams_group_describe import StreamsGroupDescribeRequest
    from kproto_server.coordinator.streams_groups.data import StreamsMember, Tasks, TaskSets
    from kproto_server.coordinator.streams_groups.group import StreamsGroup
    from kproto_server.deferred import LargeResponse
    from kproto_server.requests.context import RequestContext

ASSIGNOR = "sticky"
NOT_STORED = 1
"""A value of ``topology_description_status``. Only a plugin of the broker could store descriptions."""


def handle(request: StreamsGroupDescribeRequest, context: RequestContext) -> LargeResponse:
    group_ids = empty_ids_first(request.group_ids, context)
    return respond(StreamsGroupDescribeResponse, lambda group_id: _describe(group_id, request, context), group_ids)


def _describe(group_id: str, request: StreamsGroupDescribeRequest, context: RequestContext) -> DescribedGroup:
    if not context.cluster.features.level(STREAMS_VERSION):
        return refused(DescribedGroup, group_id, ErrorCode.UNSUPPORTED_VERSION)
    group = find(DescribedGroup, group_id, "streams", context)
    if isinstance(group, DescribedGroup):
        return group
    from kproto_server.coordinator.streams_groups.group import StreamsGroup

    assert isinstance(group, StreamsGroup), "of this kind"
    described = _described(group, context)
    if request.include_topology_description:
        described = described.replace(topology_description_status=NOT_STORED)
    if request.include_authorized_operations:
        described = described.replace(authorized_operations=context.behavior(AuthorizedOperationsBehavior).on_group)
    return described


def _described(group: StreamsGroup, context: RequestContext) -> DescribedGroup:
    from kproto_server.coordinator.streams_groups.descriptions import described_topology

    data = group.data
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=data.epoch,
        assignment_epoch=data.assignment_epoch,
        topology=described_topology(group),
        members=lazily(lambda member: _member(group, member, context), list(data.members.values())),
        assignor_name=ASSIGNOR,
    )


def _member(group: StreamsGroup, member: StreamsMember, context: RequestContext) -> Member:
    from kproto_server.coordinator.streams_groups.data import NO_TASKS
    from kproto_server.coordinator.streams_groups.group import NO_OFFSETS

    offsets, endpoint = group.task_offsets.get(member.member_id, NO_OFFSETS), member.endpoint
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.group_instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=tuple([KeyValue(key=key, value=value) for key, value in member.client_tags.items()]),
        task_offsets=_offsets(offsets.offsets),
        task_end_offsets=_offsets(offsets.end_offsets),
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.data.targets.get(member.member_id, NO_TASKS)),
        is_classic=False,
    )


def _offsets(offsets: Mapping[tuple[str, int], int]) -> tuple[TaskOffset, ...]:
    return tuple(
        [TaskOffset(subtopology_id=task[0], partition=task[1], offset=offset) for task, offset in offsets.items()]
    )


def _assignment(tasks: TaskSets) -> Assignment:
    return Assignment(
        active_tasks=_ids(tasks.active), standby_tasks=_ids(tasks.standby), warmup_tasks=_ids(tasks.warmup)
    )


def _ids(tasks: Tasks) -> tuple[TaskIds, ...]:
    return tuple([TaskIds(subtopology_id=one, partitions=tuple(sorted(found))) for one, found in sorted(tasks.items())])
