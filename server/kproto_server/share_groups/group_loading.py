"""Share groups from their records in `__consumer_offsets`: collected while a log is read, created at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records import share_group_records as declared
from kproto_server.share_groups.data import ShareData, ShareMember, TopicPartitions
from kproto_server.share_groups.group import ShareGroup

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.records.coordinator import CoordinatorRecord
    from kproto_server.share_groups.data import Assignment
    from kproto_server.share_groups.members import ShareMembers


class ShareGroupsLoad:
    """The share groups of one offsets partition."""

    def __init__(self, members: ShareMembers) -> None:
        self._members = members
        self._groups: dict[str, RestoredShareGroup] = {}

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply the next record."""
        group_id: str = record.key[0]  # type: ignore[index]  # a struct is a tuple, and each key begins with the group
        self._groups.setdefault(group_id, RestoredShareGroup()).replay(record)

    def finish(self, now_ms: int) -> None:
        """Create the groups, and begin the sessions of their members."""
        for group_id, restored in self._groups.items():
            if not restored.exists:
                continue
            first_epoch = self._members.behavior.first_group_epoch
            group = ShareGroup(group_id, now_ms, first_epoch)
            self._members.coordinator.groups.add(group)
            group.restore(restored.data(first_epoch), now_ms)
            timeout_ms = self._members.settings_of(group_id).session_timeout_ms
            self._members.deadlines.begin(self._members.coordinator, group, timeout_ms, now_ms)


def _assignment(partitions: Iterable[declared.TopicPartition]) -> Assignment:
    return {one.topic_id: tuple(sorted(one.partitions)) for one in partitions}


class RestoredShareGroup:
    """The records of a share group so far."""

    def __init__(self) -> None:
        self._epoch: declared.ShareGroupMetadataValue | None = None
        self._members: dict[str, declared.ShareGroupMemberMetadataValue] = {}
        self._current: dict[str, declared.ShareGroupCurrentMemberAssignmentValue] = {}
        self._targets: dict[str, Assignment] = {}
        self._assigned: declared.ShareGroupTargetAssignmentMetadataValue | None = None
        self._initialized: dict[bytes, TopicPartitions] | None = None

    @property
    def exists(self) -> bool:
        """Whether the group was not deleted."""
        return self._epoch is not None or self._initialized is not None

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply the next record of the group; a record without a value is a tombstone."""
        key, value = record.key, record.value
        match key:
            case declared.ShareGroupMetadataKey():
                self._epoch = value if isinstance(value, declared.ShareGroupMetadataValue) else None
            case declared.ShareGroupTargetAssignmentMetadataKey():
                is_value = isinstance(value, declared.ShareGroupTargetAssignmentMetadataValue)
                self._assigned = value if is_value else None  # type: ignore[assignment]  # checked
            case declared.ShareGroupMemberMetadataKey(member_id=member_id):
                if isinstance(value, declared.ShareGroupMemberMetadataValue):
                    self._members[member_id] = value
                else:
                    self._members.pop(member_id, None)
            case declared.ShareGroupCurrentMemberAssignmentKey(member_id=member_id):
                if isinstance(value, declared.ShareGroupCurrentMemberAssignmentValue):
                    self._current[member_id] = value
                else:
                    self._current.pop(member_id, None)
            case declared.ShareGroupTargetAssignmentMemberKey(member_id=member_id):
                if isinstance(value, declared.ShareGroupTargetAssignmentMemberValue):
                    self._targets[member_id] = _assignment(value.topic_partitions)
                else:
                    self._targets.pop(member_id, None)
            case declared.ShareGroupStatePartitionMetadataKey():
                self._initialized = None
                if isinstance(value, declared.ShareGroupStatePartitionMetadataValue):
                    self._initialized = {
                        topic.topic_id: TopicPartitions(topic.topic_name, frozenset(topic.partitions))
                        for topic in value.initialized_topics
                    }

    def data(self, first_epoch: int) -> ShareData:
        """Return the group as the log has it; it has its first epoch if only start offsets were set."""
        epoch, assigned = self._epoch, self._assigned
        return ShareData(
            epoch=epoch.epoch if epoch else first_epoch,
            metadata_hash=epoch.metadata_hash if epoch else 0,
            members={member_id: self._member(member_id, value) for member_id, value in self._members.items()},
            assignment_epoch=assigned.assignment_epoch if assigned else first_epoch,
            assignment_ms=assigned.assignment_timestamp if assigned else 0,
            targets=self._targets,
            initialized=self._initialized or {},
        )

    def _member(self, member_id: str, value: declared.ShareGroupMemberMetadataValue) -> ShareMember:
        current = self._current.get(member_id)
        return ShareMember(
            member_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rack_id=value.rack_id,
            topics=tuple(sorted(value.subscribed_topic_names)),
            epoch=current.member_epoch if current else 0,
            previous_epoch=current.previous_member_epoch if current else 0,
            assigned=_assignment(current.assigned_partitions) if current else {},
        )
