"""Streams groups from their records: collected while a log is read, made at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kproto.records import streams_group_records as declared
from kproto_server.coordinator.epoch_groups.newest_records import RestoredEpochGroup
from kproto_server.coordinator.streams_groups.data import (
    Endpoint,
    MemberState,
    StreamsData,
    StreamsMember,
    TaskSets,
    replace,
)
from kproto_server.coordinator.streams_groups.group import StreamsGroup
from kproto_server.coordinator.streams_groups.reconciliation import task_epochs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.records.coordinator import CoordinatorKey
    from kproto_server.coordinator.streams_groups.data import Tasks

STATES = {int(state): state for state in MemberState}


class RestoredStreamsGroup(RestoredEpochGroup):
    """The records of a group so far; the newest of each key counts."""

    metadata_key: ClassVar[type[CoordinatorKey]] = declared.StreamsGroupMetadataKey

    def make(self, group_id: str, now_ms: int, first_epoch: int) -> StreamsGroup:
        """Return the group; it is not registered. ``first_epoch``: the epochs of which the log has no record."""
        of_group, by_name = self.of_group, self.by_name
        metadata: declared.StreamsGroupMetadataValue | None = of_group(declared.StreamsGroupMetadataKey)
        target: declared.StreamsGroupTargetAssignmentMetadataValue | None = of_group(
            declared.StreamsGroupTargetAssignmentMetadataKey
        )
        current = by_name(declared.StreamsGroupCurrentMemberAssignmentKey)
        data = StreamsData(
            epoch=metadata.epoch if metadata else first_epoch,
            topology=of_group(declared.StreamsGroupTopologyKey),
            members={
                member_id: _with_current(_member(member_id, value), current.get(member_id))
                for member_id, value in by_name(declared.StreamsGroupMemberMetadataKey).items()
            },
            assignment_epoch=target.assignment_epoch if target else first_epoch,
            targets={
                member_id: TaskSets(_tasks(value.active_tasks), _tasks(value.standby_tasks), _tasks(value.warmup_tasks))
                for member_id, value in by_name(declared.StreamsGroupTargetAssignmentMemberKey).items()
            },
            assignment_timestamp_ms=target.assignment_timestamp if target else 0,
        )
        if metadata:
            data = data._replace(
                metadata_hash=metadata.metadata_hash,
                validated_topology_epoch=metadata.validated_topology_epoch,
                assignment_configs={one.key: one.value for one in metadata.last_assignment_configs or ()},
            )
        group = StreamsGroup(group_id, now_ms, StreamsData())
        group.restore(data, now_ms)
        return group


def _member(member_id: str, value: declared.StreamsGroupMemberMetadataValue) -> StreamsMember:
    endpoint = value.user_endpoint
    return StreamsMember(
        member_id,
        group_instance_id=value.instance_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        rack_id=value.rack_id,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags={tag.key: tag.value for tag in value.client_tags},
    )


def _with_current(
    member: StreamsMember, value: declared.StreamsGroupCurrentMemberAssignmentValue | None
) -> StreamsMember:
    if value is None:
        return member
    assigned = TaskSets(_tasks(value.active_tasks), _tasks(value.standby_tasks), _tasks(value.warmup_tasks))
    revoking = TaskSets(
        _tasks(value.active_tasks_pending_revocation),
        _tasks(value.standby_tasks_pending_revocation),
        _tasks(value.warmup_tasks_pending_revocation),
    )
    written = {
        (one.subtopology_id, index): epoch
        for one in (*value.active_tasks, *value.active_tasks_pending_revocation)
        for index, epoch in zip(one.partitions, one.assignment_epochs or (), strict=False)
    }
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=STATES.get(value.state, MemberState.UNKNOWN),
        assigned=assigned,
        revoking=revoking,
        task_epochs=task_epochs(written, assigned, revoking, value.member_epoch),
    )


def _tasks(ids: Iterable[declared.TaskIds] | Iterable[declared.TargetTaskIds]) -> Tasks:
    return {one.subtopology_id: frozenset(one.partitions) for one in ids if one.partitions}
