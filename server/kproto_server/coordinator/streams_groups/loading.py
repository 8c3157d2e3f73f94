"""Streams groups from their records: collected while a log is read, made at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kproto.records import streams_group_records as declared
from kproto_server.coordinator.streams_groups.data import (
    NO_EPOCH,
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

    from kproto.records.coordinator import CoordinatorRecord
    from kproto_server.coordinator.streams_groups.data import Tasks

STATES = {int(state): state for state in MemberState}


class RestoredStreamsGroup:
    """The records of a group so far; the newest of each key counts."""

    def __init__(self) -> None:
        self.is_deleted: bool = False
        self._data = StreamsData(epoch=NO_EPOCH, assignment_epoch=NO_EPOCH)
        self._members: dict[str, StreamsMember] = {}
        self._current: dict[str, declared.StreamsGroupCurrentMemberAssignmentValue] = {}
        self._targets: dict[str, TaskSets] = {}

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply the next record; a record without a value is a tombstone."""
        match record.key, record.value:
            case declared.StreamsGroupMetadataKey(), None:
                self.is_deleted = True
            case _, declared.StreamsGroupMetadataValue() as value:
                self._data = self._data._replace(
                    epoch=value.epoch,
                    metadata_hash=value.metadata_hash,
                    validated_topology_epoch=value.validated_topology_epoch,
                    assignment_configs={one.key: one.value for one in value.last_assignment_configs or ()},
                )
            case declared.StreamsGroupTopologyKey(), value:
                self._data = self._data._replace(topology=cast("declared.StreamsGroupTopologyValue | None", value))
            case declared.StreamsGroupMemberMetadataKey() as key, None:
                self._members.pop(key.member_id, None)
            case declared.StreamsGroupMemberMetadataKey() as key, declared.StreamsGroupMemberMetadataValue() as value:
                self._members[key.member_id] = _member(key.member_id, value)
            case declared.StreamsGroupTargetAssignmentMetadataKey(), None:
                self._data = self._data._replace(assignment_epoch=NO_EPOCH, assignment_timestamp_ms=0)
            case _, declared.StreamsGroupTargetAssignmentMetadataValue() as value:
                self._data = self._data._replace(
                    assignment_epoch=value.assignment_epoch, assignment_timestamp_ms=value.assignment_timestamp
                )
            case declared.StreamsGroupTargetAssignmentMemberKey() as key, None:
                self._targets.pop(key.member_id, None)
            case (
                declared.StreamsGroupTargetAssignmentMemberKey() as key,
                declared.StreamsGroupTargetAssignmentMemberValue() as value,
            ):
                self._targets[key.member_id] = TaskSets(
                    _tasks(value.active_tasks), _tasks(value.standby_tasks), _tasks(value.warmup_tasks)
                )
            case declared.StreamsGroupCurrentMemberAssignmentKey() as key, None:
                self._current.pop(key.member_id, None)
            case (
                declared.StreamsGroupCurrentMemberAssignmentKey() as key,
                declared.StreamsGroupCurrentMemberAssignmentValue() as value,
            ):
                self._current[key.member_id] = value

    def make(self, group_id: str, now_ms: int, first_epoch: int) -> StreamsGroup:
        """Return the group; it is not registered. ``first_epoch``: the epochs of which the log has no record."""
        data = self._data
        data = data._replace(
            epoch=first_epoch if data.epoch == NO_EPOCH else data.epoch,
            assignment_epoch=first_epoch if data.assignment_epoch == NO_EPOCH else data.assignment_epoch,
            members={one: _with_current(member, self._current.get(one)) for one, member in self._members.items()},
            targets=self._targets,
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
