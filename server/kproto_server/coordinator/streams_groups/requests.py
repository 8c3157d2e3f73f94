"""Which heartbeats are invalid whatever the group is, and what the valid ones say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import INTERNAL_TOPICS, Refusal, name_problem
from kproto_server.coordinator.epoch_groups.requests import JOIN_EPOCH, LEAVE_STATIC_EPOCH, UNCHANGED, problem_of_ids
from kproto_server.coordinator.streams_groups.data import NO_PARTITIONS, TaskSets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskIds, Topology
    from kproto_server.coordinator.streams_groups.data import Tasks
    from kproto_server.coordinator.streams_groups.version_behavior import StreamsBehavior
    from kproto_server.releases.kafka_version import KafkaVersion

MORE_PARTITIONS_UNKNOWN = 0
"""The partition count of a topic that follows from others."""


def topics_refusal(topology: Topology, kafka_version: KafkaVersion) -> Refusal | None:
    """Refuse a topology with topics that cannot exist, or that belong to Kafka."""
    names = list(dict.fromkeys(_topics(topology)))
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        message = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        return Refusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    invalid = [name for name in names if name_problem(name, kafka_version) is not None]
    if invalid:
        message = f"Topic names {','.join(invalid)} are not valid topic names."
        return Refusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    return None


def _topics(topology: Topology) -> Iterator[str]:
    for one in topology.subtopologies:
        yield from one.source_topics
        yield from one.repartition_sink_topics
        yield from [topic.name for topic in one.repartition_source_topics]
        yield from [topic.name for topic in one.state_changelog_topics]


def request_refusal(request: StreamsGroupHeartbeatRequest, behavior: StreamsBehavior) -> Refusal | None:
    """Return why a heartbeat is invalid; None if it is valid."""
    problem = _unsupported(request, behavior) or _problem(request)
    return _topology_refusal(request) if problem is None else Refusal(ErrorCode.INVALID_REQUEST, problem)


def _topology_refusal(request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    for subtopology in () if request.topology is None else request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != MORE_PARTITIONS_UNKNOWN:
                message = (
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )
                return Refusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    return None


def _unsupported(request: StreamsGroupHeartbeatRequest, behavior: StreamsBehavior) -> str | None:
    """Return what a heartbeat has that the release does not support."""
    if request.instance_id is not None and not behavior.has_static_members:
        return "Static membership is not yet supported."
    if not behavior.has_task_offsets:
        if request.task_offsets is not None:
            return "TaskOffsets are not supported yet."
        if request.task_end_offsets is not None:
            return "TaskEndOffsets are not supported yet."
        if request.warmup_tasks:
            return "WarmupTasks are not supported yet."
    if request.topology is not None and any(one.source_topic_regex for one in request.topology.subtopologies):
        return "Regular expressions for source topics are not supported yet."
    return None


def _problem(request: StreamsGroupHeartbeatRequest) -> str | None:
    epoch = request.member_epoch
    problem = problem_of_ids(request.member_id, request.group_id, request.instance_id, request.rack_id)
    if problem is not None:
        return problem
    if epoch == JOIN_EPOCH:
        problem = _problem_of_join(request)
        if problem is not None:
            return problem
    elif epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        return "InstanceId can't be null."
    elif epoch < LEAVE_STATIC_EPOCH:
        return f"MemberEpoch is {epoch}, but must be greater than or equal to -2."
    given = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(one is not None for one in given) and any(one is None for one in given):
        return "If one task-type is non-null, all must be non-null."
    if epoch != JOIN_EPOCH and request.topology is not None:
        return "Topology can only be provided when (re-)joining."
    return None


def _problem_of_join(request: StreamsGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == UNCHANGED:
        return "RebalanceTimeoutMs must be provided in first request."
    named = (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    )
    for name, tasks in named:
        if tasks is None or tasks:
            return f"{name} must be empty when (re-)joining."
    return "Topology must be non-null when (re-)joining." if request.topology is None else None


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> TaskSets | None:
    """Return the tasks that the member says it has; None: it does not say."""
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return TaskSets(_tasks(request.active_tasks), _tasks(request.standby_tasks), _tasks(request.warmup_tasks))


def _tasks(ids: Iterable[TaskIds]) -> Tasks:
    found: Tasks = {}
    for one in ids:
        found[one.subtopology_id] = found.get(one.subtopology_id, NO_PARTITIONS) | frozenset(one.partitions)
    return found
