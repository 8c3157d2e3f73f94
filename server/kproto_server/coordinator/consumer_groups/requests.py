"""Which heartbeats are invalid whatever the group is (GP-51)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.epoch_groups.requests import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    UNCHANGED,
    problem_of_ids,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

OWN_MEMBER_IDS_SINCE = 1
"""The first version in which the member makes its own id (KIP-1082)."""


def request_error(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Sequence[str]) -> Refusal | None:
    """Return why a heartbeat is invalid; None if it is valid."""
    problem = _problem(request, api_version)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, problem)
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        message = f"ServerAssignor {assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        return Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    return None


def _problem(request: ConsumerGroupHeartbeatRequest, api_version: int) -> str | None:
    epoch = request.member_epoch
    needs_member_id = api_version >= OWN_MEMBER_IDS_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    member_id = request.member_id if needs_member_id else None
    problem = problem_of_ids(member_id, request.group_id, request.instance_id, request.rack_id)
    if problem is not None:
        return problem
    if epoch == JOIN_EPOCH:
        return _problem_of_join(request)
    if epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if epoch < LEAVE_STATIC_EPOCH else None


def _problem_of_join(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == UNCHANGED:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None
