"""What of a group outlives the broker: its record in the log of the group's offsets partition (LF-14, LF-15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.change_log import NO_BATCH, Change
from kproto_server.coordinator.groups import Group, Member
from kproto_server.coordinator.partitioning import OFFSETS_TOPIC, partition_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto_server.releases.profiles import Profile
    from kproto_server.state import BrokerState


def persist(state: BrokerState, group: Group, now_ms: int, done: Callable[[int], object]) -> None:
    """Write a group as it is in this moment; ``done`` is told the log's error, 0 once it is there."""

    topic = state.cluster.topics.get(OFFSETS_TOPIC)
    if topic is None:
        done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    else:
        partition = partition_for(group.group_id, len(topic.partitions))
        batch = NO_BATCH
        if state.log.keeps:
            from kproto_server.coordinator.log_records.batches import offsets_compression
            from kproto_server.coordinator.log_records.groups import group_batch

            batch = group_batch(group, now_ms, state.profile, offsets_compression(state.settings))
        state.log.append(partition, Change(group.group_id, done), *batch)


def snapshot(group: Group, assignments: Mapping[str, bytes] | None = None) -> Group:
    """Return what the record says: the group as it is, or as it will be with these assignments (GP-32)."""
    copy = Group(group.group_id, 0, group.kind)
    copy.state = group.state
    copy.state_timestamp_ms = group.state_timestamp_ms
    copy.protocol_type = group.protocol_type
    copy.protocol_name = group.protocol_name
    copy.generation = group.generation
    copy.leader_id = group.leader_id
    for member in group.members.values():
        assignment = member.assignment if assignments is None else assignments[member.member_id]
        copy.members[member.member_id] = _with_assignment(member, assignment)
    return copy


def _with_assignment(member: Member, assignment: bytes) -> Member:
    return Member(
        member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.protocols,
        metadata=member.metadata,
        assignment=assignment,
    )


_GONE = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR}
_AWAY = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}
_TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE}


def write_error(log_error: int, profile: Profile) -> int:
    """Return what members are told of a group that can't be written (GP-33)."""
    error = ErrorCode(log_error)
    if error in _AWAY:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error in _GONE:
        return ErrorCode.NOT_COORDINATOR
    if error in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if error is ErrorCode.REQUEST_TIMED_OUT:
        new = profile.new_group_coordinator
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if new else ErrorCode.REBALANCE_IN_PROGRESS
    return error
