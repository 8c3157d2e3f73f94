"""The records of a change of a streams group: the difference between two values of `StreamsData` (LF-11).

What is equal in both values is not written. The records are in Kafka's order: tombstones of members, members, the
topology, the group epoch, targets, the assignment epoch, current assignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records import streams_group_records as declared
from kproto_server.coordinator.epoch_groups.records import MemberKeys, changed_members
from kproto_server.coordinator.streams_groups.data import NO_EPOCH, metadata_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kproto_server.coordinator.epoch_groups.batches import Pair
    from kproto_server.coordinator.streams_groups.data import StreamsData, StreamsMember, Tasks
    from kproto_server.coordinator.version_behavior import OffsetsLogBehavior

KEYS = MemberKeys(
    declared.StreamsGroupCurrentMemberAssignmentKey,
    declared.StreamsGroupTargetAssignmentMemberKey,
    declared.StreamsGroupMemberMetadataKey,
)


def changes(behavior: OffsetsLogBehavior, group_id: str, before: StreamsData, after: StreamsData) -> Iterator[Pair]:
    """Yield what a change writes."""
    yield from KEYS.of_removed(group_id, before.members, after.members)
    changed = changed_members(before.members, after.members)
    for member_id, member, _ in [one for one in changed if one.has_other(metadata_of)]:
        yield declared.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), _member_value(member)
    if after.topology is not None and after.topology is not before.topology:
        yield declared.StreamsGroupTopologyKey(group_id=group_id), after.topology
    if _group_value(before) != _group_value(after):
        yield declared.StreamsGroupMetadataKey(group_id=group_id), _group_value(after)
    for member_id, target in after.targets.items():
        if before.targets.get(member_id) is not target:
            yield (
                declared.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
                declared.StreamsGroupTargetAssignmentMemberValue(
                    active_tasks=_target_ids(target.active),
                    standby_tasks=_target_ids(target.standby),
                    warmup_tasks=_target_ids(target.warmup),
                ),
            )
    if after.assignment_epoch != before.assignment_epoch:
        timestamp_ms = after.assignment_timestamp_ms if behavior.writes_assignment_timestamp else 0
        yield (
            declared.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
            declared.StreamsGroupTargetAssignmentMetadataValue(
                assignment_epoch=after.assignment_epoch, assignment_timestamp=timestamp_ms
            ),
        )
    for member_id, member, _ in [one for one in changed if one.has_other(_current)]:
        key = declared.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
        yield key, _current_value(member)


def tombstones(group_id: str, data: StreamsData) -> Iterator[Pair]:
    """Yield the tombstones of a group and of all that belongs to it."""
    target_metadata = declared.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)
    yield from KEYS.of_all(group_id, data.members, target_metadata)
    yield declared.StreamsGroupMetadataKey(group_id=group_id), None
    yield declared.StreamsGroupTopologyKey(group_id=group_id), None


def _current(member: StreamsMember) -> tuple[object, ...]:
    """Return what the member's current assignment record has."""
    return (member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking, member.task_epochs)


def _group_value(data: StreamsData) -> declared.StreamsGroupMetadataValue:
    value = declared.StreamsGroupMetadataValue(
        epoch=data.epoch,
        metadata_hash=data.metadata_hash,
        last_assignment_configs=tuple(
            declared.LastAssignmentConfig(key=key, value=config) for key, config in data.assignment_configs.items()
        ),
    )
    if data.validated_topology_epoch == NO_EPOCH:
        return value
    return value.replace(validated_topology_epoch=data.validated_topology_epoch)


def _member_value(member: StreamsMember) -> declared.StreamsGroupMemberMetadataValue:
    endpoint = member.endpoint
    return declared.StreamsGroupMemberMetadataValue(
        instance_id=member.group_instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else declared.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=tuple(declared.KeyValue(key=key, value=value) for key, value in sorted(member.client_tags.items())),
    )


def _target_ids(tasks: Tasks) -> tuple[declared.TargetTaskIds, ...]:
    return tuple(
        declared.TargetTaskIds(subtopology_id=subtopology_id, partitions=tuple(sorted(indexes)))
        for subtopology_id, indexes in sorted(tasks.items())
    )


def _current_value(member: StreamsMember) -> declared.StreamsGroupCurrentMemberAssignmentValue:
    assigned, revoking, epochs = member.assigned, member.revoking, member.task_epochs
    return declared.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_ids_with_epochs(assigned.active, epochs),
        standby_tasks=_ids(assigned.standby),
        warmup_tasks=_ids(assigned.warmup),
        active_tasks_pending_revocation=_ids_with_epochs(revoking.active, epochs),
        standby_tasks_pending_revocation=_ids(revoking.standby),
        warmup_tasks_pending_revocation=_ids(revoking.warmup),
    )


def _ids(tasks: Tasks) -> tuple[declared.TaskIds, ...]:
    return tuple(
        declared.TaskIds(subtopology_id=subtopology_id, partitions=tuple(sorted(indexes)))
        for subtopology_id, indexes in sorted(tasks.items())
    )


def _ids_with_epochs(tasks: Tasks, epochs: Mapping[tuple[str, int], int]) -> tuple[declared.TaskIds, ...]:
    return tuple(
        one.replace(assignment_epochs=tuple([epochs[one.subtopology_id, index] for index in one.partitions]))
        for one in _ids(tasks)
    )
