"""ShareAcknowledge (API key 79): a member accepts, releases or rejects records that it has acquired."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k79_share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kproto_server.handlers._partitions import leader_endpoints
from kproto_server.handlers._share_requests import acknowledge, acknowledgements_of, is_valid, partition_of
from kproto_server.share_groups.sessions import FINAL_EPOCH, INITIAL_EPOCH

if TYPE_CHECKING:
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext
    from kproto_server.share_groups.partitions import Outcome
    from kproto_server.share_groups.sessions import TopicIdPartition


NO_LEADER = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)


def handle(request: ShareAcknowledgeRequest, context: RequestContext) -> ShareAcknowledgeResponse | DeferredResponse:
    groups, group_id, member_id = context.share_groups, request.group_id or "", request.member_id or ""
    if not groups.is_enabled:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    if None in (request.group_id, request.member_id) and groups.behavior.fails_without_ids:
        return _refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    if not is_valid(request.group_id, request.member_id):
        return _refused(ErrorCode.INVALID_REQUEST)
    epoch = request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        return _refused(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = groups.sessions(context.node.node_id).resume(group_id, member_id, epoch)
    if isinstance(session, ErrorCode):
        return _refused(session)
    if epoch != FINAL_EPOCH:
        session.next_epoch()
    acknowledgements = acknowledgements_of(request.topics)
    outcomes = acknowledge(group_id, member_id, acknowledgements, context, renews=request.is_renew_ack)
    if epoch == FINAL_EPOCH:
        groups.end_session(context.node.node_id, session, context.now_ms)
    lock_ms = groups.settings_of(group_id).lock_duration_ms
    return context.coordinator.log.then(lambda: _response(outcomes, lock_ms, context))


def _refused(error: ErrorCode) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(throttle_time_ms=0, error_code=error, responses=(), node_endpoints=())


def _response(
    outcomes: dict[TopicIdPartition, Outcome], lock_ms: int, context: RequestContext
) -> ShareAcknowledgeResponse:
    topics = tuple(
        ShareAcknowledgeTopicResponse(
            topic_id=topic_id, partitions=tuple(_partition(one, outcomes[one], context) for one in found)
        )
        for topic_id, found in groupby(outcomes, key=lambda one: one.topic_id)
    )
    leaders = {part.current_leader.leader_id for topic in topics for part in topic.partitions}
    return ShareAcknowledgeResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout_ms=lock_ms,
        responses=topics,
        node_endpoints=leader_endpoints(NodeEndpoint, leaders, context),
    )


def _partition(one: TopicIdPartition, outcome: Outcome, context: RequestContext) -> PartitionData:
    leader = NO_LEADER
    partition = partition_of(one, context) if outcome.error == ErrorCode.NOT_LEADER_OR_FOLLOWER else None
    if partition is not None:
        leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
    return PartitionData(
        partition_index=one.partition, error_code=outcome.error, error_message=outcome.message, current_leader=leader
    )
