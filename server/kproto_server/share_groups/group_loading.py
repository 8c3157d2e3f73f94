"""Share groups from their records in `__consumer_offsets`: collected while a log is read, created at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records import share_group_records as declared
from kproto_server.coordinator.epoch_groups.newest_records import NewestRecords
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


class RestoredShareGroup(NewestRecords):
    """The records of a share group so far."""

    @property
    def exists(self) -> bool:
        """Whether the group was not deleted."""
        keys = (declared.ShareGroupMetadataKey, declared.ShareGroupStatePartitionMetadataKey)
        return any(self.of_group(key) is not None for key in keys)

    def data(self, first_epoch: int) -> ShareData:
        """Return the group as the log has it; it has its first epoch if only start offsets were set."""
        of_group, by_name = self.of_group, self.by_name
        epoch: declared.ShareGroupMetadataValue | None = of_group(declared.ShareGroupMetadataKey)
        assigned: declared.ShareGroupTargetAssignmentMetadataValue | None = of_group(
            declared.ShareGroupTargetAssignmentMetadataKey
        )
        initialized: declared.ShareGroupStatePartitionMetadataValue | None = of_group(
            declared.ShareGroupStatePartitionMetadataKey
        )
        current = by_name(declared.ShareGroupCurrentMemberAssignmentKey)
        known: dict[tuple[str, ...], tuple[str, ...]] = {}
        return ShareData(
            epoch=epoch.epoch if epoch else first_epoch,
            metadata_hash=epoch.metadata_hash if epoch else 0,
            members={
                member_id: _member(member_id, value, current.get(member_id), known)
                for member_id, value in by_name(declared.ShareGroupMemberMetadataKey).items()
            },
            assignment_epoch=assigned.assignment_epoch if assigned else first_epoch,
            assignment_ms=assigned.assignment_timestamp if assigned else 0,
            targets={
                member_id: _assignment(value.topic_partitions)
                for member_id, value in by_name(declared.ShareGroupTargetAssignmentMemberKey).items()
            },
            initialized={
                topic.topic_id: TopicPartitions(topic.topic_name, frozenset(topic.partitions))
                for topic in (initialized.initialized_topics if initialized else ())
            },
        )


def _member(
    member_id: str,
    value: declared.ShareGroupMemberMetadataValue,
    current: declared.ShareGroupCurrentMemberAssignmentValue | None,
    known: dict[tuple[str, ...], tuple[str, ...]],
) -> ShareMember:
    """Return a member. Members with the same topics have the same tuple, out of ``known``."""
    topics = tuple(sorted(value.subscribed_topic_names))
    return ShareMember(
        member_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rack_id=value.rack_id,
        topics=known.setdefault(topics, topics),
        epoch=current.member_epoch if current else 0,
        previous_epoch=current.previous_member_epoch if current else 0,
        assigned=_assignment(current.assigned_partitions) if current else {},
    )
