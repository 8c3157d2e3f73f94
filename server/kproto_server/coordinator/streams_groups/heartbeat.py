"""StreamsGroupHeartbeat: a member joins or stays.

Theory of operation. A heartbeat has five steps, and each may change the group's data:

1. The member is created or updated. The first member brings the topology.
2. The topology is configured with the topics that there are now: it is ready, or something is missing or wrong, which
   the response says as a status.
3. A change of the member, of the topics, or of the configs of the assignor raises the group epoch.
4. If the group epoch is above the assignment epoch, the assignor computes the targets of all members, unless a delay
   is not over yet.
5. The member takes its next step towards its target (`reconciliation`).

The response has the member's epoch, its tasks if these have changed, and the endpoints of other members with their
partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.epoch_groups.group import SESSION
from kproto_server.coordinator.epoch_groups.lookup import member_of, replaced, unreleased
from kproto_server.coordinator.epoch_groups.requests import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    UNCHANGED,
    Client,
)
from kproto_server.coordinator.epoch_groups.writing import write
from kproto_server.coordinator.streams_groups import endpoints, reported, timers
from kproto_server.coordinator.streams_groups.data import (
    NO_EPOCH,
    NO_TASKS,
    Endpoint,
    MemberState,
    StreamsData,
    StreamsMember,
    TaskSets,
    group_metadata_of,
    metadata_of,
    replace,
    with_member,
)
from kproto_server.coordinator.streams_groups.group import NO_OFFSETS, StreamsGroup
from kproto_server.coordinator.streams_groups.leaving import leave
from kproto_server.coordinator.streams_groups.limits import limits_of_group
from kproto_server.coordinator.streams_groups.reconciliation import Step, reconcile
from kproto_server.coordinator.streams_groups.requests import owned_tasks
from kproto_server.coordinator.streams_groups.targets import with_due_targets
from kproto_server.coordinator.streams_groups.timers import DEADLINES
from kproto_server.coordinator.streams_groups.topology import (
    are_same,
    configure,
    hash_of_topics,
    stored_topology,
    task_problem,
)
from kproto_server.coordinator.streams_groups.version_behavior import behavior_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto.messages.k88_streams_group_heartbeat import EndpointToPartitions, StreamsGroupHeartbeatRequest
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.epoch_groups.group import Write
    from kproto_server.coordinator.streams_groups.group import TaskOffsets
    from kproto_server.coordinator.streams_groups.limits import StreamsLimits
    from kproto_server.coordinator.streams_groups.statuses import Status
    from kproto_server.coordinator.streams_groups.version_behavior import behavior_of
from kproto_server.coordinator.streams_groups.topology import ConfiguredTopology, NewTopic


class HeartbeatResult(NamedTuple):
    """What the response has."""

    member_id: str
    epoch: int
    write: Write
    """The change, which the log has before the response."""
    limits: StreamsLimits | None = None
    """None: the member has left."""
    statuses: Sequence[Status] = ()
    tasks: TaskSets | None = None
    """None: as in the last response."""
    endpoint_epoch: int = 0
    endpoints: Sequence[EndpointToPartitions] | None = None
    """None: as in the last response."""
    missing_topics: Sequence[NewTopic] = ()
    """Internal topics to be created."""
    group: StreamsGroup | None = None
    """None: the member has left."""


def heartbeat(
    coordinator: GroupCoordinator, request: StreamsGroupHeartbeatRequest, client: Client, api_version: int, now_ms: int
) -> HeartbeatResult | Refusal:
    """Handle a valid heartbeat to a node that coordinates the group. The log may not have the change yet."""
    if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        left = leave(coordinator, request, now_ms)
        return left if isinstance(left, Refusal) else HeartbeatResult(request.member_id, request.member_epoch, left)
    limits = limits_of_group(coordinator, request.group_id)
    group = _group(coordinator, request, limits, now_ms)
    if isinstance(group, Refusal):
        return group
    found = _member(group, request)
    if isinstance(found, Refusal):
        return found
    member, data = found
    updated = _updated(member, request, client, join_removes_endpoint=behavior_of(coordinator).join_removes_endpoint)
    decided = _decided(coordinator, group, data, member, updated, request, limits, now_ms)
    if isinstance(decided, Refusal):
        return decided
    data, updated, found_statuses, task_offsets = decided
    known = endpoints.update(coordinator, group, member, data, updated, request)
    if isinstance(known, Refusal):
        return known
    is_new = coordinator.groups.get(request.group_id) is not group
    group.topics_version = coordinator.topics_version()  # a heartbeat that is refused finds no change of the topics
    written = write(coordinator, group, data, now_ms)
    member_id = updated.member_id
    if task_offsets is not NO_OFFSETS:
        group.task_offsets[member_id] = task_offsets
    DEADLINES.set(coordinator, group, member_id, SESSION, now_ms + limits.session_timeout_ms)
    DEADLINES.note_reconciliation(coordinator, group, member, updated, now_ms)
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = member_id
    configured = group.configured
    assert configured is not None, "configured by this heartbeat or an earlier one"
    has_new_tasks = request.member_epoch == JOIN_EPOCH or updated.assigned != member.assigned
    result = HeartbeatResult(
        member_id,
        updated.epoch,
        written,
        limits,
        [*found_statuses, *reported.at_the_end(group, configured, updated, limits, api_version)],
        updated.assigned if has_new_tasks else None,
        0 if is_new else group.endpoint_epoch,
        known,
        configured.missing,
        group,
    )
    if is_new:
        group.forget()
    return result


def _group(
    coordinator: GroupCoordinator, request: StreamsGroupHeartbeatRequest, limits: StreamsLimits, now_ms: int
) -> StreamsGroup | Refusal:
    """Return the group; a new one, which is not registered yet, if a member joins where no streams group is."""
    group_id, joins = request.group_id, request.member_epoch == JOIN_EPOCH
    group = coordinator.group(group_id)
    if isinstance(group, StreamsGroup):
        keeps_members = behavior_of(coordinator).full_group_keeps_members
        is_member = request.member_id in group.members or request.instance_id in group.static_members
        if joins and len(group.members) >= limits.size_max and not (keeps_members and is_member):
            message = f"The streams group has reached its maximum capacity of {limits.size_max} members."
            return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
        return group
    if group is not None and not (joins and group.kind == "classic" and group.is_empty):
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    if not joins:
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
    return StreamsGroup(group_id, now_ms, StreamsGroup.new_data(coordinator.behavior.first_group_epoch))


def _member(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> tuple[StreamsMember, StreamsData] | Refusal:
    """Return the member and the data of its group. A member that returns as a static one has replaced the old one."""
    data, member_id, instance_id = group.data, request.member_id, request.instance_id
    if request.member_epoch != JOIN_EPOCH:
        found = member_of(group, data.members, member_id, instance_id)
        return found if isinstance(found, Refusal) else _epoch_refusal(found, request) or (found, data)
    present_id = None if instance_id is None else group.static_members.get(instance_id)
    if instance_id is None or present_id is None:
        return data.members.get(member_id) or StreamsMember(member_id), data
    old = data.members[present_id]
    if old.epoch != LEAVE_STATIC_EPOCH:
        return unreleased(member_id, instance_id, present_id)
    member = replace(old, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    target = data.targets.get(present_id, NO_TASKS)
    members = replaced(data.members, present_id, member_id, member)
    return member, data._replace(members=members, targets=replaced(data.targets, present_id, member_id, target))


def _epoch_refusal(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    """Refuse an epoch that is not the member's. The previous one is accepted if the last response may be lost."""
    received = request.member_epoch
    if received == member.epoch:
        return None
    comparison = "greater" if received > member.epoch else "smaller"
    if comparison == "smaller" and received == member.previous_epoch:
        owned = owned_tasks(request)
        if owned is not None and member.assigned.contains(owned):
            return None
    message = (
        f"The streams group member has a {comparison} member epoch ({received}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _updated(
    member: StreamsMember, request: StreamsGroupHeartbeatRequest, client: Client, *, join_removes_endpoint: bool
) -> StreamsMember:
    """Return the member with the fields of the request; the same object if none of them is new."""
    endpoint = (
        None if request.user_endpoint is None else Endpoint(request.user_endpoint.host, request.user_endpoint.port)
    )
    if endpoint is None and not (join_removes_endpoint and request.member_epoch == JOIN_EPOCH):
        endpoint = member.endpoint
    tags = member.client_tags
    if request.client_tags is not None:
        tags = {tag.key: tag.value for tag in request.client_tags}
    updated = replace(
        member,
        group_instance_id=member.group_instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if request.rebalance_timeout_ms == UNCHANGED else request.rebalance_timeout_ms
        ),
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=endpoint,
        client_tags=tags,
        client_id=client.client_id,
        client_host=client.client_host,
    )
    return member if metadata_of(updated) == metadata_of(member) else updated


def _decided(
    coordinator: GroupCoordinator,
    group: StreamsGroup,
    data: StreamsData,
    member: StreamsMember,
    updated: StreamsMember,
    request: StreamsGroupHeartbeatRequest,
    limits: StreamsLimits,
    now_ms: int,
) -> tuple[StreamsData, StreamsMember, list[Status], TaskOffsets] | Refusal:
    """Return the next data of the group, the member in them, statuses of the response, and the member's offsets."""
    behavior = behavior_of(coordinator)
    raises_epoch = updated is not member
    if raises_epoch and request.instance_id is not None:
        raises_epoch = group_metadata_of(updated) != group_metadata_of(member)
    if data.members.get(updated.member_id) is not updated:
        data = data._replace(members=with_member(data.members, updated))
    with_topology = _with_topology(data, request)
    if isinstance(with_topology, Refusal):
        return with_topology
    found_statuses = reported.of_stale_topology(group.data, updated)
    found_topology = _configured(coordinator, group, with_topology)
    if isinstance(found_topology, Refusal):
        return found_topology
    data, configured = found_topology
    if configured.subtopologies is not None and configured.is_ready:
        for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
            problem = task_problem(configured.subtopologies, tasks or ())
            if problem is not None:
                return Refusal(ErrorCode.INVALID_REQUEST, problem)
    task_offsets = _task_offsets(group, updated.member_id, request)
    if isinstance(task_offsets, Refusal):
        return task_offsets
    data = _with_new_epoch(group.data, data, configured, limits, raises_epoch=raises_epoch)
    if behavior.first_epoch_is_late and data.epoch == 1 and group.data.epoch == 0:
        data = data._replace(epoch=2)
    if group.is_empty:
        timers.begin_delay(coordinator, group, limits, now_ms)
    due = with_due_targets(coordinator, group, data, limits, now_ms)
    data = due.data
    if updated.state is MemberState.UNKNOWN and owned_tasks(request) != NO_TASKS:
        message = "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
        return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)
    target = data.targets.get(updated.member_id, NO_TASKS)
    moved = reconcile(group, updated, Step(target, due.epoch, owned_tasks(request), behavior.changes_roles_in_place))
    if moved is not updated:
        data = data._replace(members=with_member(data.members, moved))
    return data, moved, [*found_statuses, *due.statuses], task_offsets


def _with_topology(data: StreamsData, request: StreamsGroupHeartbeatRequest) -> StreamsData | Refusal:
    """Return the data with the topology of the group, which the first member brings."""
    if request.topology is None:
        return data
    brought = stored_topology(request.topology)
    if len({one.subtopology_id for one in brought.subtopologies}) < len(brought.subtopologies):
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    if data.topology is None:
        return data._replace(topology=brought)
    if data.topology.epoch <= brought.epoch and not are_same(data.topology, brought):
        return Refusal(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return data


def _configured(
    coordinator: GroupCoordinator, group: StreamsGroup, data: StreamsData
) -> tuple[StreamsData, ConfiguredTopology] | Refusal:
    """Return the data with the hash of the topics, and the topology, configured again if topics have changed."""
    assert data.topology is not None, "brought by the first member"
    is_new = group.data.topology is None
    if group.configured is not None and not is_new and coordinator.topics_version() == group.topics_version:
        return data, group.configured
    configured = configure(data.topology, coordinator.topics)
    if isinstance(configured, Refusal):
        return configured
    group.configured = configured
    return data._replace(metadata_hash=hash_of_topics(coordinator, data.topology)), configured


def _with_new_epoch(
    before: StreamsData, data: StreamsData, configured: ConfiguredTopology, limits: StreamsLimits, *, raises_epoch: bool
) -> StreamsData:
    """Return the data with the next epoch, if the member, the topics or the configs of the assignor have changed."""
    assert data.topology is not None, "brought by the first member"
    validated = data.topology.epoch if configured.is_ready else NO_EPOCH
    now = data.metadata_hash, validated, limits.assignment_configs
    if not raises_epoch and now == (before.metadata_hash, before.validated_topology_epoch, before.assignment_configs):
        return data
    return data._replace(epoch=data.epoch + 1, validated_topology_epoch=validated, assignment_configs=now[2])


def _task_offsets(group: StreamsGroup, member_id: str, request: StreamsGroupHeartbeatRequest) -> TaskOffsets | Refusal:
    """Return the newest offsets that the member has reported of its state stores."""
    known = group.task_offsets.get(member_id, NO_OFFSETS)
    for given, name in ((request.task_offsets, "offsets"), (request.task_end_offsets, "end_offsets")):
        if given is None:
            continue
        found: dict[tuple[str, int], int] = {}
        for one in given:
            task = one.subtopology_id, one.partition
            if task in found:
                entry = f"subtopology {task[0]} and partition {task[1]}"
                return Refusal(ErrorCode.INVALID_REQUEST, f"Task offsets contain a duplicate entry for {entry}.")
            found[task] = one.offset
        known = known._replace(**{name: found})
    return known
