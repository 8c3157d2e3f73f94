"""Where the partitions of all members are, for interactive queries (KIP-535): by the members' endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k88_streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.epoch_groups.requests import JOIN_EPOCH
from kproto_server.coordinator.streams_groups.data import merged
from kproto_server.coordinator.streams_groups.version_behavior import behavior_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest
    from kproto_server.cluster.topics import Topic
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.streams_groups.data import StreamsData, StreamsMember, Tasks
    from kproto_server.coordinator.streams_groups.group import StreamsGroup
    from kproto_server.coordinator.streams_groups.topology import Subtopologies


def update(
    coordinator: GroupCoordinator,
    group: StreamsGroup,
    before: StreamsMember,
    data: StreamsData,
    member: StreamsMember,
    request: StreamsGroupHeartbeatRequest,
) -> Sequence[EndpointToPartitions] | Refusal | None:
    """Note a change of a member; return the endpoints unless the request has their newest epoch.

    ``data``: the next ones of the group, with the member. Without tasks, a member with an endpoint is an error, which
    is Kafka's.
    """
    behavior, has_new_tasks = behavior_of(coordinator), member.assigned != before.assigned
    joins = request.member_epoch == JOIN_EPOCH and not behavior.endpoint_changes_raise_epoch
    is_new = member.endpoint != before.endpoint and behavior.endpoint_changes_raise_epoch
    if is_new or ((has_new_tasks or joins) and member.endpoint is not None):
        group.endpoint_epoch += 1
    if group.endpoint_epoch == request.endpoint_information_epoch:
        return None
    others = [one for one in data.members.values() if one.member_id != member.member_id]
    known = [one for one in (*others, member) if one.endpoint is not None]
    subtopologies = None if group.configured is None else group.configured.subtopologies
    if subtopologies is None:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR) if known else []
    counts = behavior.counts_partitions_of_endpoints
    return [_of(one, subtopologies, coordinator.topics, counts=counts) for one in known]


def _of(
    member: StreamsMember, subtopologies: Subtopologies, topics: Mapping[str, Topic], *, counts: bool
) -> EndpointToPartitions:
    assert member.endpoint is not None, "of a member with an endpoint"
    return EndpointToPartitions(
        user_endpoint=Endpoint(host=member.endpoint.host, port=member.endpoint.port),
        active_partitions=read_partitions(member.assigned.active, subtopologies, topics, counts=counts),
        standby_partitions=read_partitions(
            merged(member.assigned.standby, member.assigned.warmup), subtopologies, topics, counts=counts
        ),
    )


def read_partitions(
    tasks: Tasks, subtopologies: Subtopologies, topics: Mapping[str, Topic], *, counts: bool = False
) -> tuple[TopicPartition, ...]:
    """Return the partitions that tasks read: a topic may have fewer than its subtopology has tasks.

    ``counts``: of a topic with fewer partitions than tasks, return those of the first tasks, whichever they are.
    """
    found = []
    for subtopology_id, indexes in sorted(tasks.items()):
        one = subtopologies[subtopology_id]
        for name in dict.fromkeys((*one.source_topics, *[topic.name for topic in one.repartition_source_topics])):
            size = len(topics[name].partitions) if name in topics else 0
            ordered = sorted(indexes)
            existing = ordered[:size] if counts else [index for index in ordered if index < size]
            if existing or counts:
                found.append(TopicPartition(topic=name, partitions=tuple(existing)))
    return tuple(found)
